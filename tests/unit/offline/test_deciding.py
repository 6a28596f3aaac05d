"""What is answered, with providers and without."""

import msgspec
import pytest

from roost.errors import BadFile
from tests.support.fleets.worlds import settings_of
from tests.unit.offline.documents import ABC, answer, chosen, fleet, provider, refused, request


def weights(found, weigher, field="raw"):
    """Give what a weigher says of each ranked host."""
    return {
        host.nodename: getattr(cell, field)
        for host in found.ranking
        for cell in host.weights
        if cell.weigher == weigher
    }


def test_without_providers_hosts_have_what_they_say():
    told = fleet(
        hosts=[
            {"host": "a", "total_usable_ram_mb": 4096, "free_ram_mb": 100, "vcpus_total": 4, "vcpus_used": 1},
            {"host": "b", "total_usable_ram_mb": 4096, "vcpus_total": 4, "cpu_allocation_ratio": 2.5},
            {"host": "c", "free_ram_mb": -7, "disk_mb_used": 1024, "total_usable_disk_gb": 3, "num_instances": 9},
        ]
    )
    found = answer(told)
    assert weights(found, "ram") == {"a": 100.0, "b": 4096.0, "c": 0.0}
    assert weights(found, "cpu") == {"a": 3.0, "b": 10.0, "c": 0.0}
    assert weights(found, "disk") == {"a": 0.0, "b": 0.0, "c": 2048.0}
    assert weights(found, "num_instances") == {"a": 0.0, "b": 0.0, "c": 9.0}
    assert weights(found, "num_instances", "contribution") == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert not found.searched
    assert "no providers" in found.scope


def test_without_providers_amounts_refuse_nobody():
    found = answer(fleet(), flavor={"vcpus": 4096})
    assert found.outcome == "granted"
    assert [stage.rule for stage in found.stages] == ["compute"]
    assert found.picks[0].allocations == ()


def test_without_providers_what_is_asked_of_them_is_passed_over_with_a_warning():
    found = answer(
        fleet(),
        flavor={"vcpus": 1, "extra_specs": {"trait:CUSTOM_A": "required", "resources:PGPU": "1"}},
        resource_groups=[{"suffix": "_1", "resources": {"PGPU": 1}}],
    )
    assert found.outcome == "granted"
    (warning,) = found.warnings
    assert "resources:PGPU, trait:CUSTOM_A, resource group '_1'" in warning


def test_a_flavor_of_nothing_is_decided_by_filters_alone():
    assert chosen(answer(fleet(), flavor={}, count=5)) == ["a", "b", "c", "a", "b"]


def test_several_instances_count_on_hosts_without_providers():
    told = fleet(hosts=[{"host": "a", "free_ram_mb": 4096}, {"host": "b", "free_ram_mb": 3000}])
    assert chosen(answer(told, flavor={"memory_mb": 1024}, count=6)) == ["a", "b"] * 3


def test_zones_and_aggregates_are_kept_without_providers_too():
    told = fleet(zones={"east": ["b"]}, aggregates=[{"name": "fast", "hosts": ["b", "c"]}])
    assert chosen(answer(told, availability_zone="east")) == ["b"]
    elsewhere = ("map_az_to_placement_aggregate", "are not in the aggregates asked for")
    assert refused(answer(told, availability_zone="east")) == {"a": elsewhere, "c": elsewhere}
    assert chosen(answer(told, availability_zone="nova", destination={"aggregates": [["fast"]]})) == ["c"]
    assert chosen(answer(told, destination={"forbidden_aggregates": ["fast"]})) == ["a"]


def test_the_multiplier_of_an_aggregate_is_that_of_its_hosts():
    told = fleet(
        hosts=[{"host": "a", "free_ram_mb": 1000}, {"host": "b", "free_ram_mb": 900}],
        aggregates=[{"name": "fast", "metadata": {"ram_weight_multiplier": "3"}, "hosts": ["b"]}],
    )
    found = answer(told)
    assert weights(found, "ram", "multiplier") == {"a": 1.0, "b": 3.0}
    assert chosen(found) == ["b"]


def test_with_providers_the_reason_of_a_host_is_what_it_has():
    told = fleet(
        providers=[
            provider("a", inventories={"VCPU": {"total": 8, "used": 7}, "MEMORY_MB": {"total": 4096}}),
            provider("b", inventories={"MEMORY_MB": {"total": 4096, "used": 3584}}),
            provider("c", inventories={"VCPU": {"total": 8, "max_unit": 1}, "MEMORY_MB": {"total": 1, "used": 9}}),
        ]
    )
    found = answer(told)
    assert found.searched
    assert refused(found) == {
        "a": ("search", "has 1 of 2 VCPU"),
        "b": ("search", "has 512 of 1,024 MiB memory"),
        "c": ("search", "has 0 of 1,024 MiB memory"),
    }
    assert found.reason.startswith("0 of 3 hosts: 2 lack 1,024 MiB memory or more, 1 lack 2 VCPU or more")
    assert refused(answer(told, flavor={"vcpus": 2}))["b"] == ("search", "offers no VCPU")
    assert refused(answer(told, flavor={"vcpus": 2}))["c"] == (
        "search",
        "has 8 of 2 VCPU, but its unit bounds do not allow that amount",
    )


def test_groups_on_children_say_how_many_of_them_fit():
    gpus = [provider(f"a-gpu{n}", parent="a", inventories={"PGPU": {"total": 1, "used": n}}) for n in (0, 1)]
    told = fleet(hosts=[{"host": "a"}], providers=[provider("a"), *gpus])
    wanted = [{"suffix": f"_{n}", "resources": {"PGPU": 1}} for n in (1, 2)]
    found = answer(told, resource_groups=wanted, flavor={"vcpus": 1, "extra_specs": {"group_policy": "isolate"}})
    assert refused(found) == {"a": ("search", "has room for 1 of 2 groups")}
    one = answer(told, resource_groups=wanted[:1])
    shares = {share.provider: share.resources for share in one.picks[0].allocations}
    assert shares == {"a": {"VCPU": 2, "MEMORY_MB": 1024}, "a-gpu0": {"PGPU": 1}}


def test_a_host_with_providers_may_say_otherwise_than_they_do():
    told = fleet(
        hosts=[{"host": "a"}, {"host": "b", "free_ram_mb": 5000, "ram_allocation_ratio": 7.0}],
        providers=[provider("a"), provider("b")],
    )
    assert weights(answer(told), "ram") == {"a": 4096.0, "b": 5000.0}
    bounded = answer(told, flavor={"vcpus": 1, "extra_specs": {"capabilities:ram_allocation_ratio": "== 7"}})
    assert chosen(bounded) == ["b"]


def test_parents_may_come_after_their_children():
    child = provider("a-numa", parent="a")
    told = fleet(hosts=[{"host": "a"}], providers=[child, provider("a", inventories={})])
    assert [share.provider for share in answer(told).picks[0].allocations] == ["a-numa"]


def test_members_of_a_server_group_are_where_it_says():
    one = "00000000-0000-4000-8000-000000000001"
    told = fleet(
        hosts=[{"host": "a", "instances": [one]}, {"host": "b"}, {"host": "c"}],
        server_groups=[
            {"name": "apart", "policy": "anti-affinity", "members": {"a": [one], "b": 2}},
            {"name": "some", "policy": "anti-affinity", "rules": {"max_server_per_host": 2}, "members": {"a": 1}},
            {"name": "near", "policy": "affinity", "members": {"c": 1}},
        ],
    )
    assert chosen(answer(told, group="apart")) == ["c"]
    assert answer(told, group="apart", count=2).outcome == "refused"
    assert chosen(answer(told, group="some", count=5)) == ["a", "b", "c", "b", "c"]
    assert chosen(answer(told, group="near")) == ["c"]
    assert weights(answer(told), "num_instances") == {"a": 2.0, "b": 2.0, "c": 1.0}


def test_fault_domains_are_those_of_the_racks():
    hosts = [{"host": name, "rack": f"r{name}"} for name in "abc"]
    group = {
        "name": "g",
        "policy": "fault-domain",
        "members": {"a": 1, "b": 1},
        "fault_domains": [{"rack": "ra", "domain": "one"}],
    }
    told = fleet(hosts=hosts, server_groups=[group])
    assert set(refused(answer(told, group="g", hints={"fault_domain": "one"}))) == {"b"}
    assert set(refused(answer(told, group="g", hints={"fault_domain": "two"}))) == {"a", "b"}
    assert set(refused(answer(told, group="g"))) == {"a"}


def test_a_refusal_of_several_tells_of_the_one_that_found_no_host():
    told = fleet(hosts=[{"host": "a"}], providers=[provider("a")])
    found = answer(told, flavor={"vcpus": 3}, count=4)
    assert found.outcome == "refused"
    assert found.reason.endswith("room for 2 of 4 instances")
    assert refused(found) == {"a": ("search", "has 2 of 3 VCPU")}
    assert found.picks == () == found.ranking


def test_the_time_is_that_of_the_fleet():
    hosts = [{"host": "a", "service": {"last_seen_up": 900}}, {"host": "b", "service": {"last_seen_up": 1000}}]
    assert chosen(answer(fleet(hosts=hosts))) == ["b"]
    assert answer(fleet(hosts=hosts)).now == 1000
    assert chosen(answer(fleet(hosts=hosts, now=930))) == ["a"]
    assert answer(fleet()).now == 0


def test_the_seed_draws():
    settings = settings_of(host_subset_size=3)
    drawn = {seed: chosen(answer(fleet(), settings, seed=seed)) for seed in range(20)}
    assert {node for nodes in drawn.values() for node in nodes} == {"a", "b", "c"}
    assert drawn == {seed: chosen(answer(fleet(), settings, seed=seed)) for seed in range(20)}


def test_equal_documents_have_equal_answers():
    told = fleet(providers=[provider(name) for name in "abc"])
    assert msgspec.json.encode(answer(told, count=9)) == msgspec.json.encode(answer(told, count=9))


def test_nodes_of_one_service_are_told_apart():
    told = fleet(hosts=[{"host": "s", "nodename": "n1"}, {"host": "s", "hypervisor_hostname": "n2", "free_ram_mb": 9}])
    assert chosen(answer(told)) == ["n2"]
    assert chosen(answer(told, force_nodes=["n1"])) == ["n1"]


def test_instances_that_are_named_are_in_the_picks():
    uuids = [f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2)]
    found = answer(fleet(), count=2, instance_uuids=uuids)
    assert [pick.instance_uuid for pick in found.picks] == uuids
    assert [pick.instance_uuid for pick in answer(fleet()).picks] == [None]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"group": "g"}, "$.group: there is no server group 'g'"),
        ({"destination": {"aggregates": [["x"]]}}, "$.destination.aggregates[0]: there is no aggregate 'x'"),
        ({"availability_zone": "x"}, "there is no availability zone x"),
        ({"count": 2, "instance_uuids": [str(msgspec.UNSET)]}, "$.instance_uuids[0]: invalid UUID"),
        (
            {"count": 2, "instance_uuids": ["00000000-0000-4000-8000-000000000001"]},
            "$: 2 instances are asked for, but 1 uuids are given",
        ),
        ({"flavour": {}}, "$: there is no key 'flavour'; there is 'flavor'"),
        ({"count": 0}, "$.count: must be a whole number >= 1"),
        ({"flavor": {"vcpus": -1}}, "$.flavor.vcpus: must be a whole number >= 0"),
    ],
)
def test_a_request_that_cannot_be_meant_is_told_with_its_place(said, error):
    with pytest.raises(BadFile) as found:
        answer(fleet(), **said)
    assert str(found.value) == f"request.json: {error}"


def test_a_request_without_a_flavor_is_refused():
    with pytest.raises(BadFile, match=r"request.json: \$.flavor: must be an object, got null"):
        request(flavor=None)


def test_all_hosts_of_a_document_are_there():
    assert {host.host for host in answer(fleet()).ranking} == {host["host"] for host in ABC}


def test_filters_tell_what_a_host_is_or_has():
    told = fleet(
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
    found = answer(told, flavor={"vcpus": 1, "extra_specs": wishes})
    assert chosen(found) == ["g"]
    assert {host: reason for host, (_, reason) in refused(found).items()} == {
        "a": "is disabled: new disk",
        "b": "is forced down",
        "c": "is down: its last report was 100 s ago",
        "d": "has 5 for free_ram_mb, required is >= 2000",
        "e": "has nothing for stats:tier, required is gold",
        "f": "has tin for stats:tier, required is gold",
    }
