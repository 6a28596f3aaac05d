"""Explanations are true: the tests recount each figure slowly, and try each change and each tipping point."""

from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.app import Roost
from roost.errors import BadRequest, NotFound
from roost.model.evidence.explain import Explanation
from roost.model.fleet import Departure
from roost.model.names import amount_text
from roost.model.request import Request
from roost.scheduler.explain import relaxations
from roost.scheduler.framework.host_view import HostView
from roost.store.memory_store import MemoryStore
from tests.reference import scheduler as slow
from tests.reference.plain_worlds import fleet_of, random_options, random_wish, random_world, request_of
from tests.support.fleets.worlds import digest, roost_on, settings_of

FILTERS = ["compute", "image_properties", "server_group_anti_affinity", "server_group_affinity"]
EDITS = (
    relaxations.without_traits,
    relaxations.other_zones,
    relaxations.without_aggregates,
    relaxations.without_server_group,
    relaxations.without_named_hosts,
    relaxations.other_images,
    relaxations.without_capabilities,
)


def fits(roost: Roost, request: Request) -> bool:
    """Return whether a dry run grants a request; an invalid request is not granted."""
    try:
        return roost.decide(request, dry_run=True).is_granted
    except (BadRequest, NotFound):
        return False


def compare_counts(roost: Roost, request: Request, explanation: Explanation) -> None:
    """Run every check on every host separately, and compare the counts."""
    scheduler, state = roost.scheduler, roost.state
    shape = scheduler._shapes.get(request, state=state, now_s=1000.0)
    refusals: list[set[int]] = [set() for _ in explanation.rules]
    for row in range(len(state.hosts)):
        for at, check in enumerate(shape.fit.checks):
            passes = check.mask[row] if hasattr(check, "mask") else check.judge_host(state, row)
            if not passes:
                refusals[at].add(row)
        at = len(shape.fit.checks)
        if not shape.fit.is_exact:
            if not any(row in refused for refused in refusals) and shape.fit.judge_host(state, row) < len(shape.fit):
                refusals[at].add(row)
            at += 1
        for later, (rule, mask) in enumerate(shape.verdicts._filters, start=at):
            view = HostView(state, row_array(row))
            if not (mask[row] if rule is None else rule.keep(view, shape.spec)[0]):
                refusals[later].add(row)
    for at, rule in enumerate(explanation.rules):
        others = set().union(*(refused for number, refused in enumerate(refusals) if number != at))
        before = set().union(*refusals[:at])
        assert rule.alone == len(refusals[at])
        assert rule.only == len(refusals[at] - others)
        assert rule.in_turn == len(refusals[at] - before)
    assert explanation.left == len(state.hosts) - len(set().union(*refusals))
    compare_nearest(roost, shape, explanation, refusals)


def row_array(row):
    return np.array([row], dtype=np.intp)


def compare_nearest(roost: Roost, shape, explanation: Explanation, refusals: list[set[int]]) -> None:
    """Sort all hosts by the number and size of their shortfalls, and compare."""
    if explanation.left:
        assert explanation.nearest == []
        return
    state = roost.state

    def shortfall(at: int, row: int) -> float:
        check = shape.fit.checks[at] if at < len(shape.fit.checks) else None
        if hasattr(check, "amount"):
            rows = state.providers.rows_of_tree(state.hosts.provider_row.each[row])
            rows = rows + [lender for lender, served in check.lenders if served[row]]
            columns = state.inventory(check.class_id)
            most = max((columns.free.each[each] for each in rows if each in columns.holders), default=0)
            return max(check.amount - max(most, 0), 0) / check.amount
        if hasattr(check, "group_count"):
            served = 0
            for provider in check.find_rows(row):
                each = min(int(state.classes[class_id].free.view[provider]) // want for class_id, want in check.amounts)
                served += max(min(each, 1) if check.is_isolated else each, 0)
            return max(check.group_count - served, 0) / check.group_count
        return 1.0

    def key(row: int) -> tuple[int, float, int]:
        refusing = [at for at, refused in enumerate(refusals) if row in refused]
        return len(refusing), sum(shortfall(at, row) for at in refusing), row

    wanted = [state.hosts.names[row] for row in sorted(range(len(state.hosts)), key=key)[:5]]
    assert [miss.host for miss in explanation.nearest] == wanted
    for miss in explanation.nearest:
        row = state.hosts.names.index(miss.host)
        refusing = [
            largest_unit_reason(state, shape, at=at, row=row) or explanation.rules[at].reason
            for at, refused in enumerate(refusals)
            if row in refused
        ]
        assert [each.reason for each in miss.shortfalls] == refusing


def largest_unit_reason(state, shape, *, at: int, row: int) -> str:
    """Return the reason of a host whose largest unit is below the amount; empty when units permit it."""
    check = shape.fit.checks[at] if at < len(shape.fit.checks) else None
    if getattr(check, "units", None) is None:
        return ""
    rows = state.providers.rows_of_tree(state.hosts.provider_row.each[row])
    rows = rows + [lender for lender, served in check.lenders if served[row]]
    columns = state.inventory(check.class_id)
    largest = max((columns.max_unit.each[each] for each in rows if columns.total.each[each] > 0), default=0)
    if not 0 < largest < check.amount:
        return ""
    return f"accept at most {amount_text(state.class_ids.name_of(check.class_id), largest)} in one allocation"


def compare_changes(roost: Roost, request: Request, explanation: Explanation) -> None:
    """Try every possible change, and compare those that fit with the offered changes."""
    query = roost.scheduler._shapes.get(request, state=roost.state, now_s=1000.0).query
    wanted = []
    for part in relaxations.query_amounts(query):
        smaller = (relaxations.reduce_amount(request, part, amount) for amount in range(part.amount - 1, 0, -1))
        wanted.extend([edit for edit in smaller if fits(roost, edit.request)][:1])
    wanted.extend([edit for edit in relaxations.fewer_groups(request, query) if fits(roost, edit.request)][:1])
    for edits in EDITS:
        wanted.extend(edit for edit in edits(request, roost.state) if fits(roost, edit.request))
    offered = [change for change in explanation.changes if change.kind != "count"]
    assert sorted(change.text for change in offered) == sorted(edit.text for edit in wanted)
    assert {change.text: change.request for change in offered} == {edit.text: edit.request for edit in wanted}
    assert all(change.hosts for change in explanation.changes)
    for change in explanation.changes:
        if change.kind == "count":
            assert fits(roost, change.request)
            assert not fits(roost, msgspec.structs.replace(change.request, count=change.request.count + 1))


def compare_tips(roost: Roost, request: Request, explanation: Explanation, options: dict[str, float]) -> None:
    """Set each multiplier just below and just above its tipping point, and check the winner."""
    decision = roost.decide(request, dry_run=True)
    assert [line.host for line in explanation.ranking[:5]] == [score.host for score in decision.best]
    assert [line.total for line in explanation.ranking[:5]] == pytest.approx([score.total for score in decision.best])
    for line in explanation.ranking:
        assert line.total == pytest.approx(sum(line.shares.values()))
    winner = explanation.ranking[0].host
    if len(explanation.ranking) > 1 and explanation.ranking[0].total - explanation.ranking[1].total < 1e-9:
        return  # Rounding decides the order of such a tie.
    for tip in explanation.tips:
        step = tip.tipping - tip.multiplier
        if abs(step) < 1e-6:
            continue
        for factor, is_tipped in ((0.99, False), (1.01, True)):
            multiplier = tip.multiplier + factor * step
            name = slow.option_of(tip.weigher)
            value = -multiplier if tip.weigher == "build_failure" else multiplier
            if (value < 0 and tip.weigher.startswith(("soft", "pci"))) or multiplier == 0:
                continue
            changed = settings_of(enabled_filters=FILTERS, options={**options, name: value})
            other = roost.fork(settings=changed).decide(request)
            assert (other.best[0].host != winner) == is_tipped, (tip, multiplier)


def serve(seed: int, *, acts: int) -> None:
    """Serve random requests and departures, and explain each request before its decision."""
    random = Random(seed)
    world = random_world(random)
    options = random_options(random)
    roost = roost_on(MemoryStore(), settings=settings_of(enabled_filters=FILTERS, options=options))
    roost.install(fleet_of(world))
    living: list[str] = []
    for _ in range(acts):
        if living and random.random() < 0.2:
            roost.work([Departure(instance_uuids=(living.pop(),))])
        request = request_of(random_wish(random, world))
        before = digest(roost.state)
        explanation = roost.explain(request)
        assert digest(roost.state) == before
        if request.count == 1:
            compare_counts(roost, request, explanation)
        if explanation.reason:
            compare_changes(roost, request, explanation)
            assert explanation.never is not None
            assert explanation.never.could_fit == roost.without_consumers().decide(request).is_granted
            assert explanation.never.could_fit == (not explanation.never.reason)
        elif request.count == 1:
            compare_tips(roost, request, explanation, options)
        decision = roost.decide(request)
        assert bool(explanation.reason) != decision.is_granted
        living.extend(pick.instance_uuid for pick in decision.picks)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_explanation_matches_slow_recount(seed):
    serve(seed, acts=8)


@pytest.mark.soak
@settings(max_examples=1_000, deadline=None)
@given(st.integers(0, 2**32))
def test_explanation_matches_slow_recount_in_long_runs(seed):
    serve(seed, acts=20)
