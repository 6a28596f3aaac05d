"""Decisions seen from outside: what a request may ask, who is chosen, and what a refusal leaves behind."""

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
    chosen,
    digest,
    group,
    host,
    hosts,
    roost_with,
    settings_of,
    uuid_named,
    wish,
)

# --- one of the best -------------------------------------------------------------------------------------------------


def uneven(count=6):
    """Hosts h0, h1, … each better than the next."""
    return [host(f"h{number}", VCPU=8, MEMORY_MB=100 - number) for number in range(count)]


def choices(settings, fleets, seeds=range(80)):
    return [chosen(roost_with(*fleets, settings=settings, seed=seed).decide(wish()))[0] for seed in seeds]


@pytest.mark.shows("S156")
def test_a_subset_of_one_is_always_the_best():
    assert set(choices(settings_of(), uneven(), range(5))) == {"h0"}


@pytest.mark.shows("S156")
def test_every_host_of_the_subset_is_reachable_and_no_other():
    counted = Counter(choices(settings_of(host_subset_size=3), uneven()))
    assert set(counted) == {"h0", "h1", "h2"}
    assert min(counted.values()) > 10


def test_a_subset_larger_than_the_fleet_is_the_fleet():
    assert set(choices(settings_of(host_subset_size=50), uneven(3), range(40))) == {"h0", "h1", "h2"}


def test_shuffling_chooses_among_hosts_that_weigh_as_much_as_the_best():
    fleets = [hosts(3), host("worse", VCPU=8, MEMORY_MB=16)]
    counted = Counter(choices(settings_of(shuffle=True), fleets))
    assert set(counted) == {"h0", "h1", "h2"}
    assert min(counted.values()) > 10


def test_shuffling_reaches_ties_beyond_the_table_of_scores():
    assert len(set(choices(settings_of(shuffle=True), [hosts(9)], range(100)))) == 9


def test_shuffle_and_subset_choose_among_the_shuffled_and_those_behind_them():
    fleets = [hosts(2), host("third", VCPU=8, MEMORY_MB=16), host("fourth", VCPU=8, MEMORY_MB=8)]
    assert set(choices(settings_of(shuffle=True, host_subset_size=3), fleets)) == {"h0", "h1", "third"}


@pytest.mark.parametrize(
    "settings", [settings_of(host_subset_size=4), settings_of(shuffle=True)], ids=["subset", "shuffle"]
)
def test_the_same_seed_makes_the_same_choices(settings):
    first, again = (
        [chosen(each) for each in roost_with(hosts(6), settings=settings, seed=7).work([wish(count=3)] * 4)]
        for _ in range(2)
    )
    assert first == again


def test_instances_of_one_request_draw_each_for_itself():
    roost = roost_with(hosts(40, VCPU=40, MEMORY_MB=400), settings=settings_of(shuffle=True))
    assert len(set(chosen(roost.decide(wish(count=12))))) == 12


def test_the_seed_of_a_choice_is_kept_with_it():
    roost = roost_with(hosts(2))
    assert len({roost.decide(wish()).seed for _ in range(5)}) == 5


# --- hosts by name ---------------------------------------------------------------------------------------------------


@pytest.mark.shows("S202")
@pytest.mark.parametrize(
    ("asked", "found"),
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
def test_a_request_may_name_its_hosts(asked, found):
    roost = roost_with(hosts(3), host("h3", facts=HostFacts(cell="b")))
    decision = roost.decide(wish(**asked))
    assert set(chosen(decision)) <= found
    assert decision.is_granted == bool(found)
    if found:
        others = {pick.host for picks in decision.alternates.values() for pick in picks}
        assert {*chosen(decision), *others} == found


@pytest.mark.shows("S202")
def test_a_forced_host_is_not_filtered():
    roost = roost_with(host("h0", facts=HostFacts(is_disabled=True)), hosts(0), host("h1"))
    assert chosen(roost.decide(wish(force_hosts=("h0",)))) == ["h0"]
    assert roost.decide(wish(destination=Destination(host="h0"))).outcome == "refused"


def test_a_forced_host_serves_a_request_whose_groups_all_have_a_suffix():
    roost = roost_with(hosts(3))
    flavor = Flavor(name="bare", extra_specs={"resources1:VCPU": "1"})
    assert chosen(roost.decide(Request(flavor=flavor, force_hosts=("h1",)))) == ["h1"]


def test_a_server_group_that_a_request_names_must_exist():
    roost = roost_with(hosts(2))
    with pytest.raises(NotFound, match="no such"):
        roost.decide(wish(in_group="nobody"))


@pytest.mark.parametrize("node", [None, "h1"])
def test_a_destination_that_is_not_there_is_a_refusal(node):
    decision = roost_with(hosts(2)).decide(wish(destination=Destination(host="h7", node=node)))
    assert (decision.outcome, decision.reason) == ("refused", f"No such host - host: h7 node: {node}")


# --- requests that cannot be, and refusals ---------------------------------------------------------------------------


def test_an_empty_fleet_refuses():
    decision = roost_with().decide(wish())
    assert (decision.outcome, decision.reason) == ("refused", "0 of 0 hosts: no host is known yet")


def test_a_request_that_nobody_could_ever_hold_says_what_is_missing():
    decision = roost_with(hosts(2)).decide(wish(vcpus=2**31 - 1))
    assert decision.reason == "0 of 2 hosts: 2 lack 2,147,483,647 VCPU or more"
    assert (decision.picks, decision.alternates, decision.best, decision.scales) == ([], {}, [], [])


def flavored(**extra_specs):
    """Give a request with extra specs; two underscores stand for a colon."""
    named = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return Request(flavor=Flavor(name="f", vcpus=1, extra_specs=named))


def test_a_class_or_trait_that_nobody_has_is_named():
    roost = roost_with(hosts(2))
    assert roost.decide(flavored(resources__CUSTOM_GOLD="1")).reason == "0 of 2 hosts: 2 offer no CUSTOM_GOLD"
    assert roost.decide(flavored(trait__CUSTOM_FAST="required")).reason == "0 of 2 hosts: 2 lack trait CUSTOM_FAST"


def test_a_forbidden_trait_that_nobody_has_refuses_nobody():
    assert roost_with(hosts(2)).decide(flavored(trait__HW_CPU_X86_AVX="forbidden")).is_granted


def test_one_trait_of_several_is_enough_though_nobody_ever_had_the_other():
    any_of = ResourceGroup(resources={"VCPU": 1}, required=(frozenset({"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2"}),))
    roost = roost_with(host("h0"))
    asked = Request(flavor=Flavor(name="f"), groups=(any_of,))
    assert "lack trait" in roost.decide(asked).reason
    roost.placement.create_providers([_replaced(host("h1").providers[0], traits=frozenset({"HW_CPU_X86_AVX2"}))])
    roost.fleet.register_hosts(host("h1").hosts)
    assert chosen(roost.decide(asked)) == ["h1"]


def _replaced(struct, **changes):
    return msgspec.structs.replace(struct, **changes)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (Request(flavor=Flavor(name="f", vcpus=1), groups=(ResourceGroup(suffix="1", resources={"GOLD": 1}),)), "GOLD"),
        (flavored(trait__FAST="required"), "FAST"),
        (Request(flavor=Flavor(name="nothing")), "at least one"),
        (wish(instance_uuids=("garbage",)), "'garbage' is no uuid"),
        (wish(availability_zone="nowhere"), "nowhere"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused_with_its_reason(asked, problem):
    roost = roost_with(hosts(2))
    before = digest(roost.state)
    with pytest.raises(BadRequest, match=problem):
        roost.decide(asked)
    assert digest(roost.state) == before


def test_a_group_that_asks_labels_but_no_resources_is_a_refusal():
    roost = roost_with(aggregate("a", availability_zone="east"), host("h0", aggregates=["a"], VCPU=4))
    flavor = Flavor(name="f", extra_specs={"resources1:VCPU": "1"})
    decision = roost.decide(Request(flavor=flavor, availability_zone="east"))
    assert "asks no resources" in decision.reason


def test_an_instance_can_only_be_asked_for_once():
    roost = roost_with(hosts(2))
    one, two = uuid_named("one"), uuid_named("two")
    with pytest.raises(Conflict, match="exists already"):
        roost.decide(wish(count=2, instance_uuids=(one, one)))
    results = roost.outcomes([wish(instance_uuids=(one,)), wish(instance_uuids=(one,)), wish(instance_uuids=(two,))])
    assert [type(each).__name__ for each in results] == ["Decision", "Conflict", "Decision"]
    with pytest.raises(Conflict, match=one.upper()):
        roost.decide(wish(instance_uuids=(one.upper(),)))
    roost.work([Departure(instance_uuids=(one,))])
    assert roost.decide(wish(instance_uuids=(one,))).is_granted


def test_a_bad_act_leaves_those_beside_it_alone():
    roost = roost_with(hosts(2))
    bad = [wish(instance_uuids=("garbage",)), wish(in_group="nobody"), wish(destination=Destination(host="nobody"))]
    results = roost.outcomes([wish(), *bad, Departure(instance_uuids=("garbage",)), wish()])
    assert [type(each).__name__ for each in results] == [
        "Decision",
        "BadRequest",
        "NotFound",
        "Decision",
        "BadRequest",
        "Decision",
    ]
    assert len(roost.state.holders) == 2


def test_a_departure_with_a_malformed_uuid_ends_nobody():
    roost = roost_with(hosts(1))
    uuid = roost.decide(wish()).picks[0].instance_uuid
    with pytest.raises(BadRequest, match="garbage"):
        roost.work([Departure(instance_uuids=(uuid, "garbage"))])
    assert len(roost.state.holders) == 1


def test_a_departure_of_nobody_is_none():
    roost = roost_with(hosts(1))
    assert roost.work([Departure(instance_uuids=(uuid_named("nobody"),)), Departure(instance_uuids=())]) == [None, None]


def sharing(name, *, aggregates, **totals):
    """Give a host that shares what it has with those in its aggregates."""
    made = host(name, aggregates=aggregates, **totals)
    provider = _replaced(made.providers[0], traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"}))
    return _replaced(made, providers=[provider])


def test_hosts_that_live_on_another_host_s_disk_notice_when_it_is_full():
    fleets = [aggregate("a"), sharing("disks", aggregates=["a"], VCPU=1, MEMORY_MB=1, DISK_GB=5)]
    roost = roost_with(*fleets, *(host(f"h{at}", aggregates=["a"], VCPU=64, MEMORY_MB=64) for at in range(3)))
    asked = Request(flavor=Flavor(name="f", vcpus=1, memory_mb=1, root_gb=1))
    decisions = [roost.decide(asked) for _ in range(8)]
    assert [each.is_granted for each in decisions] == [True] * 5 + [False] * 3
    assert decisions[-1].reason == "0 of 4 hosts: 4 lack 1 GiB disk or more"


# --- alternates ------------------------------------------------------------------------------------------------------


def in_cells(names):
    """Give hosts, each better than the next, in the cells that their first letters say."""
    return [
        host(name, VCPU=100, MEMORY_MB=500 - at, facts=HostFacts(cell=name[0])) for at, name in enumerate(names.split())
    ]


@pytest.mark.shows("S015", "S172", "S177")
def test_alternates_are_the_next_best_of_the_same_cell_however_far_down():
    roost = roost_with(*in_cells("a0 b0 b1 b2 b3 b4 a1 a2 a3"))
    decision = roost.decide(wish(memory_mb=300))
    assert (chosen(decision), [pick.host for pick in decision.alternates["a"]]) == (["a0"], ["a1", "a2"])
    assert all(pick.instance_uuid == "" and pick.allocations for pick in decision.alternates["a"])


def test_alternates_of_the_first_member_of_an_affinity_group_are_those_it_might_have_had():
    roost = roost_with(*in_cells("a0 b0 b1 b2 b3 b4 a1 a2"), group("g", "affinity"))
    decision = roost.decide(wish(in_group="g"))
    assert [pick.host for pick in decision.alternates["a"]] == ["a1", "a2"]


@pytest.mark.shows("S172")
def test_one_attempt_needs_no_alternates():
    assert roost_with(hosts(4), settings=settings_of(max_attempts=1)).decide(wish()).alternates == {}


def test_alternates_hold_nothing():
    roost = roost_with(hosts(4))
    roost.decide(wish())
    assert len(roost.state.holders) == 1
