"""Answers for fleets with providers and without."""

import msgspec
import pytest

from roost.errors import BadFile
from tests.support.fleets.worlds import settings_of
from tests.unit.offline.documents import ABC, answer, chosen_nodes, fleet, provider, refusals, request


def weights(result, weigher, field="raw"):
    """Return a field of one weigher for each ranked host."""
    return {
        host.nodename: getattr(cell, field)
        for host in result.ranking
        for cell in host.weights
        if cell.weigher == weigher
    }


def test_without_providers_weights_come_from_host_fields():
    document = fleet(
        hosts=[
            {"host": "a", "total_usable_ram_mb": 4096, "free_ram_mb": 100, "vcpus_total": 4, "vcpus_used": 1},
            {"host": "b", "total_usable_ram_mb": 4096, "vcpus_total": 4, "cpu_allocation_ratio": 2.5},
            {"host": "c", "free_ram_mb": -7, "disk_mb_used": 1024, "total_usable_disk_gb": 3, "num_instances": 9},
        ]
    )
    result = answer(document)
    assert weights(result, "ram") == {"a": 100.0, "b": 4096.0, "c": 0.0}
    assert weights(result, "cpu") == {"a": 3.0, "b": 10.0, "c": 0.0}
    assert weights(result, "disk") == {"a": 0.0, "b": 0.0, "c": 2048.0}
    assert weights(result, "num_instances") == {"a": 0.0, "b": 0.0, "c": 9.0}
    assert weights(result, "num_instances", "contribution") == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert not result.searched
    assert "no providers" in result.scope


def test_without_providers_amounts_refuse_no_host():
    result = answer(fleet(), flavor={"vcpus": 4096})
    assert result.outcome == "granted"
    assert [stage.rule for stage in result.stages] == ["compute"]
    assert result.picks[0].allocations == ()


def test_without_providers_resource_requests_are_ignored_with_a_warning():
    result = answer(
        fleet(),
        flavor={"vcpus": 1, "extra_specs": {"trait:CUSTOM_A": "required", "resources:PGPU": "1"}},
        resource_groups=[{"suffix": "_1", "resources": {"PGPU": 1}}],
    )
    assert result.outcome == "granted"
    (warning,) = result.warnings
    assert "resources:PGPU, trait:CUSTOM_A, resource group '_1'" in warning


def test_empty_flavor_is_decided_by_filters_only():
    assert chosen_nodes(answer(fleet(), flavor={}, count=5)) == ["a", "b", "c", "a", "b"]


def test_without_providers_earlier_instances_count():
    document = fleet(hosts=[{"host": "a", "free_ram_mb": 4096}, {"host": "b", "free_ram_mb": 3000}])
    assert chosen_nodes(answer(document, flavor={"memory_mb": 1024}, count=6)) == ["a", "b"] * 3


def test_without_providers_zones_and_aggregates_apply():
    document = fleet(zones={"east": ["b"]}, aggregates=[{"name": "fast", "hosts": ["b", "c"]}])
    assert chosen_nodes(answer(document, availability_zone="east")) == ["b"]
    elsewhere = ("map_az_to_placement_aggregate", "are not in the requested aggregates")
    assert refusals(answer(document, availability_zone="east")) == {"a": elsewhere, "c": elsewhere}
    assert chosen_nodes(answer(document, availability_zone="nova", destination={"aggregates": [["fast"]]})) == ["c"]
    assert chosen_nodes(answer(document, destination={"forbidden_aggregates": ["fast"]})) == ["a"]


def test_multiplier_of_an_aggregate_applies_to_its_hosts():
    document = fleet(
        hosts=[{"host": "a", "free_ram_mb": 1000}, {"host": "b", "free_ram_mb": 900}],
        aggregates=[{"name": "fast", "metadata": {"ram_weight_multiplier": "3"}, "hosts": ["b"]}],
    )
    result = answer(document)
    assert weights(result, "ram", "multiplier") == {"a": 1.0, "b": 3.0}
    assert chosen_nodes(result) == ["b"]


def test_with_providers_refusals_name_the_available_amounts():
    document = fleet(
        providers=[
            provider("a", inventories={"VCPU": {"total": 8, "used": 7}, "MEMORY_MB": {"total": 4096}}),
            provider("b", inventories={"MEMORY_MB": {"total": 4096, "used": 3584}}),
            provider("c", inventories={"VCPU": {"total": 8, "max_unit": 1}, "MEMORY_MB": {"total": 1, "used": 9}}),
        ]
    )
    result = answer(document)
    assert result.searched
    assert refusals(result) == {
        "a": ("search", "has 1 of 2 VCPU"),
        "b": ("search", "has 512 of 1,024 MiB memory"),
        "c": ("search", "has 0 of 1,024 MiB memory"),
    }
    assert result.reason.startswith("0 of 3 hosts: 2 lack 1,024 MiB memory or more, 1 lacks 2 VCPU or more")
    assert refusals(answer(document, flavor={"vcpus": 2}))["b"] == ("search", "offers no VCPU")
    assert refusals(answer(document, flavor={"vcpus": 2}))["c"] == (
        "search",
        "has 8 of 2 VCPU, but its unit bounds do not allow that amount",
    )


def test_refusal_counts_the_groups_that_fit_on_children():
    gpus = [provider(f"a-gpu{n}", parent="a", inventories={"PGPU": {"total": 1, "used": n}}) for n in (0, 1)]
    document = fleet(hosts=[{"host": "a"}], providers=[provider("a"), *gpus])
    wanted = [{"suffix": f"_{n}", "resources": {"PGPU": 1}} for n in (1, 2)]
    result = answer(document, resource_groups=wanted, flavor={"vcpus": 1, "extra_specs": {"group_policy": "isolate"}})
    assert refusals(result) == {"a": ("search", "has room for 1 of 2 groups")}
    one = answer(document, resource_groups=wanted[:1])
    shares = {share.provider: share.resources for share in one.picks[0].allocations}
    assert shares == {"a": {"VCPU": 2, "MEMORY_MB": 1024}, "a-gpu0": {"PGPU": 1}}


def test_host_fields_override_amounts_of_providers():
    document = fleet(
        hosts=[{"host": "a"}, {"host": "b", "free_ram_mb": 5000, "ram_allocation_ratio": 7.0}],
        providers=[provider("a"), provider("b")],
    )
    assert weights(answer(document), "ram") == {"a": 4096.0, "b": 5000.0}
    bounded = answer(document, flavor={"vcpus": 1, "extra_specs": {"capabilities:ram_allocation_ratio": "== 7"}})
    assert chosen_nodes(bounded) == ["b"]


def test_parents_may_come_after_their_children():
    child = provider("a-numa", parent="a")
    document = fleet(hosts=[{"host": "a"}], providers=[child, provider("a", inventories={})])
    assert [share.provider for share in answer(document).picks[0].allocations] == ["a-numa"]


def test_server_group_members_are_on_the_listed_hosts():
    one = "00000000-0000-4000-8000-000000000001"
    document = fleet(
        hosts=[{"host": "a", "instances": [one]}, {"host": "b"}, {"host": "c"}],
        server_groups=[
            {"name": "apart", "policy": "anti-affinity", "members": {"a": [one], "b": 2}},
            {"name": "some", "policy": "anti-affinity", "rules": {"max_server_per_host": 2}, "members": {"a": 1}},
            {"name": "near", "policy": "affinity", "members": {"c": 1}},
        ],
    )
    assert chosen_nodes(answer(document, group="apart")) == ["c"]
    assert answer(document, group="apart", count=2).outcome == "refused"
    assert chosen_nodes(answer(document, group="some", count=5)) == ["a", "b", "c", "b", "c"]
    assert chosen_nodes(answer(document, group="near")) == ["c"]
    assert weights(answer(document), "num_instances") == {"a": 2.0, "b": 2.0, "c": 1.0}


def test_fault_domains_come_from_the_racks_of_the_group():
    hosts = [{"host": name, "rack": f"r{name}"} for name in "abc"]
    group = {
        "name": "g",
        "policy": "fault-domain",
        "members": {"a": 1, "b": 1},
        "fault_domains": [{"rack": "ra", "domain": "one"}],
    }
    document = fleet(hosts=hosts, server_groups=[group])
    assert set(refusals(answer(document, group="g", hints={"fault_domain": "one"}))) == {"b"}
    assert set(refusals(answer(document, group="g", hints={"fault_domain": "two"}))) == {"a", "b"}
    assert set(refusals(answer(document, group="g"))) == {"a"}


def test_refusal_of_several_instances_describes_the_first_unplaced_one():
    document = fleet(hosts=[{"host": "a"}], providers=[provider("a")])
    result = answer(document, flavor={"vcpus": 3}, count=4)
    assert result.outcome == "refused"
    assert result.reason.endswith("room for 2 of 4 instances")
    assert refusals(result) == {"a": ("search", "has 2 of 3 VCPU")}
    assert result.picks == () == result.ranking


def test_current_time_comes_from_the_fleet():
    hosts = [{"host": "a", "service": {"last_seen_up": 900}}, {"host": "b", "service": {"last_seen_up": 1000}}]
    assert chosen_nodes(answer(fleet(hosts=hosts))) == ["b"]
    assert answer(fleet(hosts=hosts)).now == 1000
    assert chosen_nodes(answer(fleet(hosts=hosts, now=930))) == ["a"]
    assert answer(fleet()).now == 0


def test_seed_determines_the_random_choice():
    settings = settings_of(host_subset_size=3)
    nodes_by_seed = {seed: chosen_nodes(answer(fleet(), settings, seed=seed)) for seed in range(20)}
    assert {node for nodes in nodes_by_seed.values() for node in nodes} == {"a", "b", "c"}
    assert nodes_by_seed == {seed: chosen_nodes(answer(fleet(), settings, seed=seed)) for seed in range(20)}


def test_equal_documents_have_equal_answers():
    document = fleet(providers=[provider(name) for name in "abc"])
    assert msgspec.json.encode(answer(document, count=9)) == msgspec.json.encode(answer(document, count=9))


def test_nodes_of_one_service_are_distinct():
    document = fleet(
        hosts=[{"host": "s", "nodename": "n1"}, {"host": "s", "hypervisor_hostname": "n2", "free_ram_mb": 9}]
    )
    assert chosen_nodes(answer(document)) == ["n2"]
    assert chosen_nodes(answer(document, force_nodes=["n1"])) == ["n1"]


def test_given_instance_uuids_are_in_the_picks():
    uuids = [f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2)]
    result = answer(fleet(), count=2, instance_uuids=uuids)
    assert [pick.instance_uuid for pick in result.picks] == uuids
    assert [pick.instance_uuid for pick in answer(fleet()).picks] == [None]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group": "g"}, "$.group: there is no server group 'g'"),
        ({"destination": {"aggregates": [["x"]]}}, "$.destination.aggregates[0]: there is no aggregate 'x'"),
        ({"availability_zone": "x"}, "there is no availability zone x"),
        ({"count": 2, "instance_uuids": [str(msgspec.UNSET)]}, "$.instance_uuids[0]: invalid UUID"),
        (
            {"count": 2, "instance_uuids": ["00000000-0000-4000-8000-000000000001"]},
            "$: 2 instances are requested, but with 1 uuids",
        ),
        ({"flavour": {}}, "$: there is no key 'flavour'; there is 'flavor'"),
        ({"count": 0}, "$.count: must be a whole number >= 1"),
        ({"flavor": {"vcpus": -1}}, "$.flavor.vcpus: must be a whole number >= 0"),
    ],
)
def test_invalid_request_error_names_the_path(fields, error):
    with pytest.raises(BadFile) as caught:
        answer(fleet(), **fields)
    assert str(caught.value) == f"request.json: {error}"


def test_a_request_without_a_flavor_is_refused():
    with pytest.raises(BadFile, match=r"request.json: \$.flavor: must be an object, got null"):
        request(flavor=None)


def test_all_hosts_of_the_document_are_ranked():
    assert {host.host for host in answer(fleet()).ranking} == {host["host"] for host in ABC}


def test_filter_reasons_describe_the_state_of_the_host():
    document = fleet(
        hosts=[
            {"host": "a", "service": {"disabled": True, "disabled_reason": "new disk"}},
            {"host": "b", "service": {"forced_down": True}},
            {"host": "c", "service": {"last_seen_up": 900}},
            {"host": "d", "free_ram_mb": 5, "stats": {"tier": "gold"}},
            {"host": "e", "free_ram_mb": 2000},
            {"host": "f", "free_ram_mb": 2000, "stats": {"tier": "tin"}},
            {"host": "g", "free_ram_mb": 2000, "stats": {"tier": "gold"}},
        ],
        now=1000,
    )
    wishes = {"capabilities:free_ram_mb": ">= 2000", "capabilities:stats:tier": "gold"}
    result = answer(document, flavor={"vcpus": 1, "extra_specs": wishes})
    assert chosen_nodes(result) == ["g"]
    assert {host: reason for host, (_, reason) in refusals(result).items()} == {
        "a": "is disabled: new disk",
        "b": "is forced down",
        "c": "is down: its last report was 100 s ago",
        "d": "has 5 for free_ram_mb, required is >= 2000",
        "e": "has nothing for stats:tier, required is gold",
        "f": "has tin for stats:tier, required is gold",
    }
