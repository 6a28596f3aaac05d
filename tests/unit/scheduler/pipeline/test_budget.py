"""Work budgets: work over its budget stops with an error or a lower bound, and the columns stay unchanged."""

import msgspec
import pytest

from roost.engine.columns.state import allow_any_work
from roost.errors import OverBudget
from roost.model.evidence.capacity import LIMIT, PLACED_LIMIT
from roost.model.flavor import Flavor
from roost.model.request import Request, ResourceGroup
from tests.support.fleets.nested_memory_hosts import nested_memory_host, two_amounts
from tests.support.fleets.worlds import (
    FixedClock,
    aggregate,
    digest,
    host,
    hosts,
    merge_fleets,
    roost_with,
    small_request,
)

TOO_LONG = OverBudget("the test", seconds=1.0, limit="none")


def stop_after(calls):
    """Return a check that stops the work after a number of calls."""
    left = iter(range(calls))

    def check():
        if next(left, None) is None:
            raise TOO_LONG

    return check


def test_interrupted_count_is_a_lower_bound_and_changes_nothing():
    roost = roost_with(merge_fleets(nested_memory_host("a"), nested_memory_host("b")))
    whole = roost.capacity(two_amounts())
    assert not whole.is_at_least
    before = digest(roost.state)
    roost.state.check = stop_after(4)
    partial = roost.capacity(two_amounts())
    assert partial.is_at_least
    assert 0 < partial.count < whole.count
    assert [each.is_at_least for each in partial.by_host] == [True, True]
    assert digest(roost.state) == before


def test_interrupted_count_with_sharing_is_a_lower_bound():
    pool = msgspec.structs.replace(
        host("pool", aggregates=["x"], DISK_GB=100).providers[0], traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"})
    )
    fleet = merge_fleets(aggregate("x"), host("a", aggregates=["x"], VCPU=99), host("b", aggregates=["x"], VCPU=99))
    roost = roost_with(msgspec.structs.replace(fleet, providers=[*fleet.providers, pool]))
    request = small_request(memory_mb=0, groups=(ResourceGroup(resources={"DISK_GB": 1}),))
    whole = roost.capacity(request)
    assert (whole.count, whole.is_at_least) == (100, False)
    before = digest(roost.state)
    roost.state.check = stop_after(10)
    partial = roost.capacity(request)
    assert (partial.adds_up, partial.is_at_least, partial.exhausted) == (False, True, [])
    assert partial.count < whole.count
    assert all(each.is_at_least for each in (*partial.zones, *partial.aggregates))
    assert digest(roost.state) == before


def test_count_by_placing_instances_has_a_lower_default_limit():
    fleet = merge_fleets(aggregate("x"), host("a", aggregates=["x"], VCPU=99))
    pool = msgspec.structs.replace(
        host("pool", aggregates=["x"], DISK_GB=12_000).providers[0], traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"})
    )
    roost = roost_with(msgspec.structs.replace(fleet, providers=[*fleet.providers, pool]))
    request = small_request(vcpus=0, memory_mb=0, groups=(ResourceGroup(resources={"DISK_GB": 1}),))
    result = roost.capacity(request, by=())
    assert (result.count, result.limit, result.is_at_least) == (PLACED_LIMIT, PLACED_LIMIT, True)
    assert roost.capacity(request, by=(), limit=LIMIT).count == 12_000


def test_host_with_several_candidates_is_counted_in_few_checks():
    roost = roost_with(nested_memory_host("a", memory_mb=12_000_000))
    roost.state.check = stop_after(100)
    result = roost.capacity(two_amounts(), by=())
    assert (result.count, result.limit, result.is_at_least) == (100_000, LIMIT, False)  # one per VCPU of the host
    few = roost.capacity(two_amounts(), by=(), limit=5)
    assert (few.count, few.is_at_least) == (5, True)


def test_capacity_without_any_budget_is_an_error():
    roost = roost_with(nested_memory_host("a"))
    roost.state.check = stop_after(0)
    with pytest.raises(OverBudget):
        roost.capacity(two_amounts())


class SteppingClock(FixedClock):
    """A clock that advances by one step at each reading."""

    def __init__(self, step_s):
        super().__init__()
        self.step_s, self.passed_s = step_s, 0.0

    def elapsed_s(self):
        """Advance by one step and return the elapsed seconds."""
        self.passed_s += self.step_s
        return self.passed_s


def test_search_over_budget_is_an_error_for_that_request_only():
    fleet = merge_fleets(*(nested_memory_host(f"host-{number:02}") for number in range(40)))
    roost = roost_with(fleet).fork(clock=SteppingClock(0.02))
    before = digest(roost.state)
    (error,) = roost.outcomes([two_amounts()])
    assert isinstance(error, OverBudget)
    assert "scheduler.search_budget_s" in str(error)
    assert digest(roost.state) == before
    error_of_first, decision = roost.outcomes([two_amounts("other"), small_request(memory_mb=0)])
    assert isinstance(error_of_first, OverBudget)
    assert decision.is_granted


def test_budget_applies_to_dry_runs():
    roost = roost_with(nested_memory_host("a"))
    roost.state.check = stop_after(0)
    with pytest.raises(OverBudget, match="the test"):
        roost.decide(two_amounts(), dry_run=True)


def test_interrupted_search_resumes_where_it_stopped():
    hosts = merge_fleets(*(nested_memory_host(f"host-{number:02}") for number in range(40)))
    roost = roost_with(hosts).fork(clock=SteppingClock(0.01))
    slices, decision = 0, None
    while decision is None:
        (result,) = roost.scheduler.work([two_amounts()], slice_s=0.3)
        if isinstance(result, OverBudget):
            slices += 1
        else:
            decision = result
    assert decision.is_granted
    assert slices > 0


def test_placing_many_instances_stops_at_the_budget():
    roost = roost_with(hosts(3, VCPU=10_000, MEMORY_MB=10_000))
    roost.state.check = stop_after(1)
    with pytest.raises(OverBudget):
        roost.decide(small_request(count=10_000), dry_run=True)


def test_interrupted_request_for_many_leaves_the_ranking_unchanged():
    fleet = hosts(3, VCPU=10_000, MEMORY_MB=10_000)
    request, cuts, decision = small_request(count=1_000), 0, None
    roost = roost_with(fleet)
    roost.decide(request, dry_run=True)  # Fills the pool from which the hosts are drawn.
    before = digest(roost.state)
    while decision is None:
        roost.state.check = stop_after(cuts)
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


def test_every_relaxation_of_an_explanation_checks_the_budget():
    traits = [f"CUSTOM_T{number}" for number in range(10)]
    fleet = hosts(3, VCPU=4)
    bearer = msgspec.structs.replace(host("bearer").providers[0], traits=frozenset(traits))
    roost, calls = roost_with(msgspec.structs.replace(fleet, providers=[*fleet.providers, bearer])), []
    roost.state.check = lambda: calls.append(1)
    specs = {f"trait:{trait}": "required" for trait in traits}
    roost.explain(Request(flavor=Flavor(name="f", vcpus=1, extra_specs=specs)))
    assert len(calls) > len(traits)


def test_capability_checks_of_an_explanation_respect_the_budget():
    roost = roost_with(hosts(3))
    specs = {f"x{number}": "1" for number in range(100)}
    roost.state.check = stop_after(10)
    with pytest.raises(OverBudget):
        roost.explain(Request(flavor=Flavor(name="f", vcpus=1, extra_specs=specs)))


def test_explanation_of_a_stored_decision_respects_the_budget():
    roost = roost_with(merge_fleets(nested_memory_host("a"), nested_memory_host("b")))
    decision = roost.decide(two_amounts())
    assert roost.why(decision.uuid).explanation is not None
    roost.state.check = stop_after(0)
    with pytest.raises(OverBudget):
        roost.why(decision.uuid)
