"""Work budgets: what takes too long ends, says so, and leaves the columns as they were."""

import msgspec
import pytest

from roost.engine.columns.state import allow_any_work
from roost.errors import OverBudget
from roost.model.evidence.capacity import LIMIT, PLACED_LIMIT
from roost.model.flavor import Flavor
from roost.model.request import Request, ResourceGroup
from tests.support.fleets.several_ways import celled_host, two_amounts
from tests.support.fleets.worlds import FixedClock, aggregate, digest, host, hosts, joined, roost_with, wish

TOO_LONG = OverBudget("the test", seconds=1.0, limit="none")


def after(calls):
    """Give a check that ends the work after so many calls."""
    left = iter(range(calls))

    def check():
        if next(left, None) is None:
            raise TOO_LONG

    return check


def test_a_count_that_is_cut_says_at_least_and_leaves_nothing_behind():
    roost = roost_with(joined(celled_host("a"), celled_host("b")))
    whole = roost.capacity(two_amounts())
    assert not whole.is_at_least
    before = digest(roost.state)
    roost.state.check = after(4)
    cut = roost.capacity(two_amounts())
    assert cut.is_at_least
    assert 0 < cut.count < whole.count
    assert [each.is_at_least for each in cut.by_host] == [True, True]
    assert digest(roost.state) == before


def test_a_count_of_a_whole_fleet_that_shares_is_cut_the_same_way():
    pool = msgspec.structs.replace(
        host("pool", aggregates=["x"], DISK_GB=100).providers[0], traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"})
    )
    fleet = joined(aggregate("x"), host("a", aggregates=["x"], VCPU=99), host("b", aggregates=["x"], VCPU=99))
    roost = roost_with(msgspec.structs.replace(fleet, providers=[*fleet.providers, pool]))
    request = wish(memory_mb=0, groups=(ResourceGroup(resources={"DISK_GB": 1}),))
    whole = roost.capacity(request)
    assert (whole.count, whole.is_at_least) == (100, False)
    before = digest(roost.state)
    roost.state.check = after(10)
    cut = roost.capacity(request)
    assert (cut.adds_up, cut.is_at_least, cut.exhausted) == (False, True, [])
    assert cut.count < whole.count
    assert all(each.is_at_least for each in (*cut.zones, *cut.aggregates))
    assert digest(roost.state) == before


def test_where_instances_are_placed_one_by_one_counting_stops_earlier_by_default():
    fleet = joined(aggregate("x"), host("a", aggregates=["x"], VCPU=99))
    pool = msgspec.structs.replace(
        host("pool", aggregates=["x"], DISK_GB=12_000).providers[0], traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"})
    )
    roost = roost_with(msgspec.structs.replace(fleet, providers=[*fleet.providers, pool]))
    request = wish(vcpus=0, memory_mb=0, groups=(ResourceGroup(resources={"DISK_GB": 1}),))
    found = roost.capacity(request, by=())
    assert (found.count, found.limit, found.is_at_least) == (PLACED_LIMIT, PLACED_LIMIT, True)
    assert roost.capacity(request, by=(), limit=LIMIT).count == 12_000


def test_a_host_that_holds_a_request_in_several_ways_is_counted_at_once():
    roost = roost_with(celled_host("a", memory_mb=12_000_000))
    roost.state.check = after(100)
    found = roost.capacity(two_amounts(), by=())
    assert (found.count, found.limit, found.is_at_least) == (100_000, LIMIT, False)  # as many VCPUs as it has
    few = roost.capacity(two_amounts(), by=(), limit=5)
    assert (few.count, few.is_at_least) == (5, True)


def test_a_question_that_cannot_even_begin_is_an_error():
    roost = roost_with(celled_host("a"))
    roost.state.check = after(0)
    with pytest.raises(OverBudget):
        roost.capacity(two_amounts())


class HurriedClock(FixedClock):
    """A clock on which each look takes a while."""

    def __init__(self, step_s):
        super().__init__()
        self.step_s, self.passed_s = step_s, 0.0

    def elapsed_s(self):
        """Return seconds that pass with each look."""
        self.passed_s += self.step_s
        return self.passed_s


def test_a_decision_whose_search_takes_too_long_is_an_error_and_the_others_are_made():
    fleet = joined(*(celled_host(f"host-{number:02}") for number in range(40)))
    roost = roost_with(fleet).fork(clock=HurriedClock(0.02))
    before = digest(roost.state)
    (error,) = roost.outcomes([two_amounts()])
    assert isinstance(error, OverBudget)
    assert "scheduler.search_budget_s" in str(error)
    assert digest(roost.state) == before
    refused, granted = roost.outcomes([two_amounts("other"), wish(memory_mb=0)])
    assert isinstance(refused, OverBudget)
    assert granted.is_granted


def test_a_budget_of_a_question_holds_for_its_dry_runs_too():
    roost = roost_with(celled_host("a"))
    roost.state.check = after(0)
    with pytest.raises(OverBudget, match="the test"):
        roost.decide(two_amounts(), dry_run=True)


def test_a_search_that_is_broken_off_goes_on_where_it_ended():
    hosts = joined(*(celled_host(f"host-{number:02}") for number in range(40)))
    roost = roost_with(hosts).fork(clock=HurriedClock(0.01))
    slices, decision = 0, None
    while decision is None:
        (result,) = roost.scheduler.work([two_amounts()], slice_s=0.3)
        if isinstance(result, OverBudget):
            slices += 1
        else:
            decision = result
    assert decision.is_granted
    assert slices > 0


def test_placing_many_instances_ends_with_the_budget_of_a_question():
    roost = roost_with(hosts(3, VCPU=10_000, MEMORY_MB=10_000))
    roost.state.check = after(1)
    with pytest.raises(OverBudget):
        roost.decide(wish(count=10_000), dry_run=True)


def test_a_request_for_many_instances_that_is_cut_anywhere_leaves_ranking_as_it_was():
    fleet = hosts(3, VCPU=10_000, MEMORY_MB=10_000)
    request, cuts, decision = wish(count=1_000), 0, None
    roost = roost_with(fleet)
    roost.decide(request, dry_run=True)  # Fills the pool from which the hosts are drawn.
    before = digest(roost.state)
    while decision is None:
        roost.state.check = after(cuts)
        try:
            decision = roost.decide(request, dry_run=True)
        except OverBudget:
            cuts += 1
            assert digest(roost.state) == before
        roost.state.check = allow_any_work
    assert cuts > 1_000 // 64, "the drawing of hosts is checked, too"
    assert [each.host for each in decision.picks] == [
        each.host for each in roost_with(fleet).decide(request, dry_run=True).picks
    ]


def test_every_change_that_an_explanation_tries_is_within_the_budget():
    traits = [f"CUSTOM_T{number}" for number in range(10)]
    fleet = hosts(3, VCPU=4)
    bearer = msgspec.structs.replace(host("bearer").providers[0], traits=frozenset(traits))
    roost, calls = roost_with(msgspec.structs.replace(fleet, providers=[*fleet.providers, bearer])), []
    roost.state.check = lambda: calls.append(1)
    specs = {f"trait:{trait}": "required" for trait in traits}
    roost.explain(Request(flavor=Flavor(name="f", vcpus=1, extra_specs=specs)))
    assert len(calls) > len(traits)


def test_a_capability_of_a_request_is_judged_within_the_budget():
    roost = roost_with(hosts(3))
    specs = {f"x{number}": "1" for number in range(100)}
    roost.state.check = after(10)
    with pytest.raises(OverBudget):
        roost.explain(Request(flavor=Flavor(name="f", vcpus=1, extra_specs=specs)))


def test_an_explanation_of_the_past_has_the_budget_of_its_question():
    roost = roost_with(joined(celled_host("a"), celled_host("b")))
    decided = roost.decide(two_amounts())
    assert roost.why(decided.uuid).explanation is not None
    roost.state.check = after(0)
    with pytest.raises(OverBudget):
        roost.why(decided.uuid)
