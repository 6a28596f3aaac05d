"""Decisions end to end: request options, chosen hosts, refusals, and alternates."""

from collections import Counter

import msgspec
import pytest

from roost.errors import BadRequest, Conflict, NotFound
from roost.model.flavor import Flavor
from roost.model.fleet import Departure
from roost.model.host import HostFacts
from roost.model.request import Destination, Request, ResourceGroup
from tests.support.fleets.worlds import (
    aggregate,
    chosen_hosts,
    digest,
    group,
    host,
    hosts,
    roost_with,
    settings_of,
    small_request,
    uuid_named,
)

# --- choice among the best hosts -------------------------------------------------------------------------------------


def descending_hosts(count=6):
    """Return hosts h0, h1, …, from the best to the worst."""
    return [host(f"h{number}", VCPU=8, MEMORY_MB=100 - number) for number in range(count)]


def choices(settings, fleets, seeds=range(80)):
    return [
        chosen_hosts(roost_with(*fleets, settings=settings, seed=seed).decide(small_request()))[0] for seed in seeds
    ]


@pytest.mark.shows("S156")
def test_subset_size_of_one_always_picks_the_best_host():
    assert set(choices(settings_of(), descending_hosts(), range(5))) == {"h0"}


@pytest.mark.shows("S156")
def test_subset_picks_every_host_of_the_subset_and_no_other():
    counts = Counter(choices(settings_of(host_subset_size=3), descending_hosts()))
    assert set(counts) == {"h0", "h1", "h2"}
    assert min(counts.values()) > 10


def test_a_subset_larger_than_the_fleet_is_the_fleet():
    assert set(choices(settings_of(host_subset_size=50), descending_hosts(3), range(40))) == {"h0", "h1", "h2"}


def test_shuffle_picks_among_hosts_that_tie_for_the_best_score():
    fleets = [hosts(3), host("worse", VCPU=8, MEMORY_MB=16)]
    counts = Counter(choices(settings_of(shuffle=True), fleets))
    assert set(counts) == {"h0", "h1", "h2"}
    assert min(counts.values()) > 10


def test_shuffle_reaches_ties_beyond_the_table_of_scores():
    assert len(set(choices(settings_of(shuffle=True), [hosts(9)], range(100)))) == 9


def test_shuffle_with_a_larger_subset_includes_the_next_best_hosts():
    fleets = [hosts(2), host("third", VCPU=8, MEMORY_MB=16), host("fourth", VCPU=8, MEMORY_MB=8)]
    assert set(choices(settings_of(shuffle=True, host_subset_size=3), fleets)) == {"h0", "h1", "third"}


@pytest.mark.parametrize(
    "settings", [settings_of(host_subset_size=4), settings_of(shuffle=True)], ids=["subset", "shuffle"]
)
def test_the_same_seed_makes_the_same_choices(settings):
    first, again = (
        [
            chosen_hosts(each)
            for each in roost_with(hosts(6), settings=settings, seed=7).work([small_request(count=3)] * 4)
        ]
        for _ in range(2)
    )
    assert first == again


def test_instances_of_one_request_are_shuffled_independently():
    roost = roost_with(hosts(40, VCPU=40, MEMORY_MB=400), settings=settings_of(shuffle=True))
    assert len(set(chosen_hosts(roost.decide(small_request(count=12))))) == 12


def test_each_decision_records_its_own_seed():
    roost = roost_with(hosts(2))
    assert len({roost.decide(small_request()).seed for _ in range(5)}) == 5


# --- requested hosts -------------------------------------------------------------------------------------------------


@pytest.mark.shows("S202")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"force_hosts": ("H2",)}, {"h2"}),
        ({"force_nodes": ("h2",)}, {"h2"}),
        ({"force_hosts": ("H2", "h1")}, {"h1", "h2"}),
        ({"ignore_hosts": ("H0", "H1", "h3")}, {"h2"}),
        ({"destination": Destination(host="H2")}, {"h2"}),
        ({"destination": Destination(node="h2")}, {"h2"}),
        ({"destination": Destination(cell="b")}, {"h3"}),
        ({"force_nodes": ("H2",)}, set()),
        ({"force_hosts": ("nobody",)}, set()),
        ({"ignore_hosts": ("h0", "h1", "h2", "h3")}, set()),
        ({"destination": Destination(host="h2"), "ignore_hosts": ("h2",)}, set()),
        ({"destination": Destination(cell="c")}, set()),
    ],
)
def test_a_request_may_name_its_hosts(options, expected):
    roost = roost_with(hosts(3), host("h3", facts=HostFacts(cell="b")))
    decision = roost.decide(small_request(**options))
    assert set(chosen_hosts(decision)) <= expected
    assert decision.is_granted == bool(expected)
    if expected:
        others = {pick.host for picks in decision.alternates.values() for pick in picks}
        assert {*chosen_hosts(decision), *others} == expected


@pytest.mark.shows("S202")
def test_a_forced_host_is_not_filtered():
    roost = roost_with(host("h0", facts=HostFacts(is_disabled=True)), hosts(0), host("h1"))
    assert chosen_hosts(roost.decide(small_request(force_hosts=("h0",)))) == ["h0"]
    assert roost.decide(small_request(destination=Destination(host="h0"))).outcome == "refused"


def test_forced_host_serves_a_request_with_only_suffixed_groups():
    roost = roost_with(hosts(3))
    flavor = Flavor(name="bare", extra_specs={"resources1:VCPU": "1"})
    assert chosen_hosts(roost.decide(Request(flavor=flavor, force_hosts=("h1",)))) == ["h1"]


def test_unknown_server_group_is_not_found():
    roost = roost_with(hosts(2))
    with pytest.raises(NotFound, match="no such"):
        roost.decide(small_request(in_group="nobody"))


@pytest.mark.parametrize("node", [None, "h1"])
def test_unknown_destination_is_a_refusal(node):
    decision = roost_with(hosts(2)).decide(small_request(destination=Destination(host="h7", node=node)))
    assert (decision.outcome, decision.reason) == ("refused", f"No such host - host: h7 node: {node}")


# --- invalid requests, and refusals ----------------------------------------------------------------------------------


def test_an_empty_fleet_refuses():
    decision = roost_with().decide(small_request())
    assert (decision.outcome, decision.reason) == ("refused", "0 of 0 hosts: no host is known yet")


def test_refusal_of_an_impossible_request_names_the_shortage():
    decision = roost_with(hosts(2)).decide(small_request(vcpus=2**31 - 1))
    assert decision.reason == "0 of 2 hosts: 2 lack 2,147,483,647 VCPU or more"
    assert (decision.picks, decision.alternates, decision.best, decision.scales) == ([], {}, [], [])


def request_with_specs(**extra_specs):
    """Return a request with extra specs; two underscores stand for a colon."""
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return Request(flavor=Flavor(name="f", vcpus=1, extra_specs=specs))


def test_refusal_names_a_class_or_trait_that_no_host_has():
    roost = roost_with(hosts(2))
    assert roost.decide(request_with_specs(resources__CUSTOM_GOLD="1")).reason == "0 of 2 hosts: 2 offer no CUSTOM_GOLD"
    assert (
        roost.decide(request_with_specs(trait__CUSTOM_FAST="required")).reason
        == "0 of 2 hosts: 2 lack trait CUSTOM_FAST"
    )


def test_forbidden_trait_that_no_host_has_refuses_no_host():
    assert roost_with(hosts(2)).decide(request_with_specs(trait__HW_CPU_X86_AVX="forbidden")).is_granted


def test_one_of_several_alternative_traits_is_enough():
    any_of = ResourceGroup(resources={"VCPU": 1}, required=(frozenset({"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"}),))
    roost = roost_with(host("h0"))
    request = Request(flavor=Flavor(name="f"), groups=(any_of,))
    assert "lacks trait" in roost.decide(request).reason
    roost.placement.create_providers([_replace(host("h1").providers[0], traits=frozenset({"HW_CPU_X86_AVX2"}))])
    roost.fleet.register_hosts(host("h1").hosts)
    assert chosen_hosts(roost.decide(request)) == ["h1"]


def _replace(struct, **changes):
    return msgspec.structs.replace(struct, **changes)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request(flavor=Flavor(name="f", vcpus=1), groups=(ResourceGroup(suffix="1", resources={"GOLD": 1}),)), "GOLD"),
        (request_with_specs(trait__FAST="required"), "FAST"),
        (Request(flavor=Flavor(name="nothing")), "at least one"),
        (small_request(instance_uuids=("garbage",)), "'garbage' is not a valid UUID"),
        (small_request(availability_zone="nowhere"), "nowhere"),
    ],
)
def test_invalid_request_is_an_error_and_changes_nothing(request_, problem):
    roost = roost_with(hosts(2))
    before = digest(roost.state)
    with pytest.raises(BadRequest, match=problem):
        roost.decide(request_)
    assert digest(roost.state) == before


def test_group_with_aggregates_but_no_resources_is_refused():
    roost = roost_with(aggregate("a", availability_zone="east"), host("h0", aggregates=["a"], VCPU=4))
    flavor = Flavor(name="f", extra_specs={"resources1:VCPU": "1"})
    decision = roost.decide(Request(flavor=flavor, availability_zone="east"))
    assert "group without resources" in decision.reason


def test_instance_uuid_can_be_requested_only_once():
    roost = roost_with(hosts(2))
    one, two = uuid_named("one"), uuid_named("two")
    with pytest.raises(Conflict, match="exists already"):
        roost.decide(small_request(count=2, instance_uuids=(one, one)))
    results = roost.outcomes(
        [
            small_request(instance_uuids=(one,)),
            small_request(instance_uuids=(one,)),
            small_request(instance_uuids=(two,)),
        ]
    )
    assert [type(each).__name__ for each in results] == ["Decision", "Conflict", "Decision"]
    with pytest.raises(Conflict, match=one.upper()):
        roost.decide(small_request(instance_uuids=(one.upper(),)))
    roost.work([Departure(instance_uuids=(one,))])
    assert roost.decide(small_request(instance_uuids=(one,))).is_granted


def test_invalid_act_does_not_affect_others_in_the_batch():
    roost = roost_with(hosts(2))
    bad = [
        small_request(instance_uuids=("garbage",)),
        small_request(in_group="nobody"),
        small_request(destination=Destination(host="nobody")),
    ]
    results = roost.outcomes([small_request(), *bad, Departure(instance_uuids=("garbage",)), small_request()])
    assert [type(each).__name__ for each in results] == [
        "Decision",
        "BadRequest",
        "NotFound",
        "Decision",
        "BadRequest",
        "Decision",
    ]
    assert len(roost.state.holders) == 2


def test_departure_with_a_malformed_uuid_ends_no_instance():
    roost = roost_with(hosts(1))
    uuid = roost.decide(small_request()).picks[0].instance_uuid
    with pytest.raises(BadRequest, match="garbage"):
        roost.work([Departure(instance_uuids=(uuid, "garbage"))])
    assert len(roost.state.holders) == 1


def test_departure_of_an_unknown_instance_returns_none():
    roost = roost_with(hosts(1))
    assert roost.work([Departure(instance_uuids=(uuid_named("nobody"),)), Departure(instance_uuids=())]) == [None, None]


def sharing_host(name, *, aggregates, **totals):
    """Return a host that shares its inventory with the hosts of its aggregates."""
    plain = host(name, aggregates=aggregates, **totals)
    provider = _replace(plain.providers[0], traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"}))
    return _replace(plain, providers=[provider])


def test_full_shared_disk_refuses_the_hosts_that_use_it():
    fleets = [aggregate("a"), sharing_host("disks", aggregates=["a"], VCPU=1, MEMORY_MB=1, DISK_GB=5)]
    roost = roost_with(*fleets, *(host(f"h{at}", aggregates=["a"], VCPU=64, MEMORY_MB=64) for at in range(3)))
    request = Request(flavor=Flavor(name="f", vcpus=1, memory_mb=1, root_gb=1))
    decisions = [roost.decide(request) for _ in range(8)]
    assert [each.is_granted for each in decisions] == [True] * 5 + [False] * 3
    assert decisions[-1].reason == "0 of 4 hosts: 4 lack 1 GiB disk or more"


# --- alternates ------------------------------------------------------------------------------------------------------


def hosts_in_cells(names):
    """Return hosts from the best to the worst; the first letter of each name is its cell."""
    return [
        host(name, VCPU=100, MEMORY_MB=500 - at, facts=HostFacts(cell=name[0])) for at, name in enumerate(names.split())
    ]


@pytest.mark.shows("S015", "S172", "S177")
def test_alternates_are_the_next_best_hosts_of_the_same_cell():
    roost = roost_with(*hosts_in_cells("a0 b0 b1 b2 b3 b4 a1 a2 a3"))
    decision = roost.decide(small_request(memory_mb=300))
    assert (chosen_hosts(decision), [pick.host for pick in decision.alternates["a"]]) == (["a0"], ["a1", "a2"])
    assert all(pick.instance_uuid == "" and pick.allocations for pick in decision.alternates["a"])


def test_first_member_of_an_affinity_group_has_alternates():
    roost = roost_with(*hosts_in_cells("a0 b0 b1 b2 b3 b4 a1 a2"), group("g", "affinity"))
    decision = roost.decide(small_request(in_group="g"))
    assert [pick.host for pick in decision.alternates["a"]] == ["a1", "a2"]


@pytest.mark.shows("S172")
def test_one_attempt_needs_no_alternates():
    assert roost_with(hosts(4), settings=settings_of(max_attempts=1)).decide(small_request()).alternates == {}


def test_alternates_hold_no_resources():
    roost = roost_with(hosts(4))
    roost.decide(small_request())
    assert len(roost.state.holders) == 1
