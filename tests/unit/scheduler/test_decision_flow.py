"""A request from end to end: the Placement query, the examined hosts, the claim, and the selections."""

import json

import msgspec
import pytest

from roost.compat.scheduler.host_manager import HostManager, host_states_of
from roost.compat.scheduler.selections import as_dicts, as_two_lists, selections_of
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Destination, Network, Request, ResourceGroup, Retry
from roost.scheduler.query.build import build_query
from roost.scheduler.query.query_string import query_string
from tests.support.fleets.worlds import (
    aggregate,
    chosen_hosts,
    digest,
    group,
    host,
    hosts,
    merge_fleets,
    roost_with,
    settings_of,
    small_request,
    uuid_named,
)
from tests.support.servers.candidate_urls import Columns

SMALL = Flavor(name="small", vcpus=1, memory_mb=1, root_gb=1)


def bare_provider(name: str, parent: str | None = None, *, traits: tuple[str, ...] = (), **totals: int) -> Fleet:
    """Return a fleet of one provider without a compute service, in the aggregate that shares the disk."""
    provider = ProviderSpec(
        uuid=uuid_named(name),
        name=name,
        parent_uuid=None if parent is None else uuid_named(parent),
        inventories={kind: Inventory(total=total) for kind, total in totals.items()},
        traits=frozenset(traits),
        aggregates=frozenset({uuid_named("shared")}),
    )
    return Fleet(providers=[provider])


@pytest.fixture
def roost():
    """Two hosts, each with one child provider, and a disk that they share."""
    return roost_with(
        aggregate("shared"),
        host("small", MEMORY_MB=16, aggregates=["shared"]),
        host("large", MEMORY_MB=32, aggregates=["shared"]),
        bare_provider("numa-of-small", "small", VCPU=4),
        bare_provider("numa-of-large", "large", VCPU=4),
        bare_provider("disk", DISK_GB=100, traits=("MISC_SHARES_VIA_AGGREGATE",)),
    )


def placement_response(roost, request):
    """Return the response of Placement to the query of a request."""
    query = build_query(request, roost.state, settings=settings_of().scheduler).query
    status, answer = Columns(roost.state).get(f"/allocation_candidates?{query_string(query)}", 36)
    assert status == 200
    return answer


# --- from the request to the hosts -----------------------------------------------------------------------------------


@pytest.mark.shows("S001", "S003", "S169")
def test_each_instance_gets_the_best_host_that_passes_the_filters():
    fleet = merge_fleets(
        aggregate("shared"),
        host("down", VCPU=8, MEMORY_MB=99, facts=HostFacts(is_disabled=True)),
        host("good", VCPU=8, MEMORY_MB=30),
        host("better", VCPU=8, MEMORY_MB=40),
        bare_provider("no-host", VCPU=8, MEMORY_MB=99),
    )
    settings = settings_of(enabled_filters=["ComputeFilter"])
    decision = roost_with(fleet, settings=settings).decide(small_request(memory_mb=8, count=4))
    assert chosen_hosts(decision) == ["better", "good", "better", "good"]
    assert [score.host for score in decision.best] == ["better", "good"]
    assert decision.best[0].total > decision.best[1].total
    assert {pick.host for picks in decision.alternates.values() for pick in picks} == set()


HOST_QUERY = {"query": '["in", "$host", "h0", "h4"]'}


@pytest.mark.shows("S002", "S010", "S208")
@pytest.mark.parametrize(
    ("filters", "stages"),
    [
        (["JsonFilter", "ComputeFilter"], [("json", 5, 2), ("compute", 2, 1)]),
        (["ComputeFilter", "JsonFilter"], [("compute", 5, 4), ("json", 4, 1)]),
    ],
    ids=["selective first", "selective last"],
)
def test_each_filter_sees_only_the_hosts_the_previous_one_accepted(filters, stages):
    fleet = merge_fleets(*(host(f"h{number}", facts=HostFacts(is_disabled=number == 4)) for number in range(5)))
    decision = roost_with(fleet, settings=settings_of(enabled_filters=filters)).decide(small_request(hints=HOST_QUERY))
    assert chosen_hosts(decision) == ["h0"]
    assert [(stage.rule, stage.before, stage.after) for stage in decision.stages if stage.rule != "search"] == stages


@pytest.mark.shows("S164")
def test_serialized_request_gives_the_same_decision():
    fleet = merge_fleets(
        aggregate("zone", availability_zone="east"),
        group("g", "anti-affinity"),
        *(host(f"h{number}", VCPU=8, MEMORY_MB=32, DISK_GB=9, aggregates=["zone"]) for number in range(6)),
    )
    request = Request(
        flavor=msgspec.structs.replace(SMALL, extra_specs={"capabilities:hypervisor_version": ">= 0"}),
        image=Image(id="i", disk_format="raw", properties={"os_distro": "debian"}),
        hints={"different_host": ["u"]},
        group=uuid_named("g"),
        count=2,
        instance_uuids=(uuid_named("one"), uuid_named("two")),
        project_id="p",
        user_id="u",
        availability_zone="east",
        ignore_hosts=("h0",),
        destination=Destination(cell=""),
        groups=(ResourceGroup(suffix="_x", resources={"VCPU": 1}),),
        retry=Retry(attempts=1, hosts=(("h1", "h1"),)),
        networks=(Network(name="n"),),
        root_forbidden=frozenset({"CUSTOM_OLD"}),
    )
    written = msgspec.json.encode(request)
    settings = settings_of(enabled_filters=["ComputeFilter", "RetryFilter", "ServerGroupAntiAffinityFilter"])
    read = msgspec.json.decode(written, type=Request)
    first, again = (roost_with(fleet, settings=settings).decide(each) for each in (request, read))
    assert read == request
    assert chosen_hosts(first) == ["h2", "h3"]
    assert msgspec.structs.replace(again, search_s=0, rank_s=0) == msgspec.structs.replace(first, search_s=0, rank_s=0)


# --- Placement -------------------------------------------------------------------------------------------------------


@pytest.mark.shows("S165", "S166", "S178")
def test_placement_response_has_candidates_and_all_their_providers(roost):
    answer = placement_response(roost, Request(flavor=SMALL))
    for each in answer["allocation_requests"]:
        each["mappings"][""].sort()
    assert answer["allocation_requests"] == [
        {
            "allocations": {
                uuid_named(name): {"resources": {"MEMORY_MB": 1}},
                uuid_named(f"numa-of-{name}"): {"resources": {"VCPU": 1}},
                uuid_named("disk"): {"resources": {"DISK_GB": 1}},
            },
            "mappings": {"": sorted(map(uuid_named, (name, f"numa-of-{name}", "disk")))},
        }
        for name in ("small", "large")
    ]
    summary = answer["provider_summaries"][uuid_named("numa-of-small")]
    assert summary["resources"]["VCPU"] == {"capacity": 4, "used": 0}
    assert summary["root_provider_uuid"] == summary["parent_provider_uuid"] == uuid_named("small")
    assert len(answer["provider_summaries"]) == 5


@pytest.mark.shows("S167", "S179")
def test_only_providers_with_a_compute_service_are_hosts(roost):
    summaries = placement_response(roost, Request(flavor=SMALL))["provider_summaries"]
    manager = HostManager(lambda: host_states_of(roost.state))
    assert [host.host for host in manager.get_host_states_by_uuids(None, summaries)] == ["small", "large"]
    decision = roost.decide(Request(flavor=SMALL), dry_run=True)
    assert sorted(score.host for score in decision.best) == ["large", "small"]


@pytest.mark.shows("S170", "S173")
def test_pick_and_alternates_use_their_first_allocation_request(roost):
    requests = placement_response(roost, Request(flavor=SMALL))["allocation_requests"]
    first = {}
    for each in requests:
        amounts = {uuid: allocation["resources"] for uuid, allocation in each["allocations"].items()}
        name = next(name for name in ("small", "large") if uuid_named(name) in amounts)
        first.setdefault(name, amounts)
    decision = roost.decide(Request(flavor=SMALL))
    assert chosen_hosts(decision) == ["large"]
    assert decision.picks[0].allocations == first["large"]
    assert [pick.allocations for pick in decision.alternates[""]] == [first["small"]]
    used = {uuid: amount for (uuid, _), (amount, *_) in digest(roost.state)["used"].items() if amount}
    assert set(used) == set(first["large"])


# --- selections ------------------------------------------------------------------------------------------------------


@pytest.fixture
def roost_and_decision():
    """A decision of two instances on hosts of one zone and one cell, with one alternate."""
    fleet = merge_fleets(
        aggregate("zone", availability_zone="east"),
        hosts(0),
        *(
            host(f"h{number}", VCPU=8, MEMORY_MB=32 - number, aggregates=["zone"], facts=HostFacts(cell="c"))
            for number in range(3)
        ),
    )
    roost = roost_with(fleet, settings=settings_of(enabled_filters=["RamFilter"]))
    return roost, roost.decide(small_request(count=2))


@pytest.mark.shows("S015", "S172", "S173", "S177")
def test_each_instance_has_its_host_and_alternates_of_its_cell(roost_and_decision):
    roost, decision = roost_and_decision
    selections = selections_of(decision, roost.state)
    assert [[each.service_host for each in instance] for instance in selections] == [["h0", "h2"], ["h1", "h2"]]
    first = selections[0][0]
    assert (first.compute_node_uuid, first.nodename, first.cell_uuid) == (uuid_named("h0"), "h0", "c")
    assert (first.limits, first.availability_zone) == ({"memory_mb": 48.0}, "east")
    assert first.allocation_request_version == "1.36"
    assert json.loads(first.allocation_request) == {
        "allocations": {uuid_named("h0"): {"resources": {"VCPU": 1, "MEMORY_MB": 1}}}
    }
    assert as_dicts(selections) == [
        {"host": name, "nodename": name, "limits": {"memory_mb": limit}} for name, limit in (("h0", 48.0), ("h1", 46.5))
    ]


def test_selection_has_the_zone_and_the_group_mappings(roost_and_decision):
    roost, decision = roost_and_decision
    roost.install(
        merge_fleets(aggregate("west", availability_zone="west"), host("h3", aggregates=["west"]), host("h4"))
    )
    mappings_of_h3 = {"": (uuid_named("h3"),), "_gpu": (uuid_named("h3"),)}
    picks = [
        msgspec.structs.replace(decision.picks[0], host=name, node=name, mappings=mappings)
        for name, mappings in (("h3", mappings_of_h3), ("h4", {}))
    ]
    selections = selections_of(msgspec.structs.replace(decision, picks=picks, alternates={}), roost.state)
    assert [first.availability_zone for (first,) in selections] == ["west", "nova"]
    stored_mappings = [json.loads(first.allocation_request).get("mappings") for (first,) in selections]
    assert stored_mappings == [{group: list(uuids) for group, uuids in mappings_of_h3.items()}, None]


@pytest.mark.shows("S174")
def test_older_selection_format_is_two_lists_of_lists(roost_and_decision):
    roost, decision = roost_and_decision
    names, requests = as_two_lists(selections_of(decision, roost.state))
    assert names == [[("h0", "h0"), ("h2", "h2")], [("h1", "h1"), ("h2", "h2")]]
    assert [[list(each["allocations"]) for each in instance] for instance in requests] == [
        [[uuid_named("h0")], [uuid_named("h2")]],
        [[uuid_named("h1")], [uuid_named("h2")]],
    ]


def test_a_refusal_selects_nothing():
    roost = roost_with(hosts(1))
    assert selections_of(roost.decide(small_request(vcpus=99)), roost.state) == []
