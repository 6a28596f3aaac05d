"""What an explanation says is so: each figure counted slowly, each change made, each tip tried."""

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
    """Return whether a request would be granted, by deciding it; one that makes no sense is not."""
    try:
        return roost.decide(request, dry_run=True).is_granted
    except (BadRequest, NotFound):
        return False


def compare_counts(roost: Roost, request: Request, told: Explanation) -> None:
    """Ask every check about every host by itself."""
    scheduler, state = roost.scheduler, roost.state
    shape = scheduler._shapes.get(request, state=state, now_s=1000.0)
    refusals: list[set[int]] = [set() for _ in told.rules]
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
            view = HostView(state, slow_rows(row))
            if not (mask[row] if rule is None else rule.keep(view, shape.spec)[0]):
                refusals[later].add(row)
    for at, rule in enumerate(told.rules):
        others = set().union(*(refused for number, refused in enumerate(refusals) if number != at))
        before = set().union(*refusals[:at])
        assert rule.alone == len(refusals[at])
        assert rule.only == len(refusals[at] - others)
        assert rule.in_turn == len(refusals[at] - before)
    assert told.left == len(state.hosts) - len(set().union(*refusals))
    compare_nearest(roost, shape, told, refusals)


def slow_rows(row):
    return np.array([row], dtype=np.intp)


def compare_nearest(roost: Roost, shape, told: Explanation, refusals: list[set[int]]) -> None:
    """Sort all hosts by how little refuses them."""
    if told.left:
        assert told.nearest == []
        return
    state = roost.state

    def part(at: int, row: int) -> float:
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
        return len(refusing), sum(part(at, row) for at in refusing), row

    wanted = [state.hosts.names[row] for row in sorted(range(len(state.hosts)), key=key)[:5]]
    assert [miss.host for miss in told.nearest] == wanted
    for miss in told.nearest:
        row = state.hosts.names.index(miss.host)
        refusing = [told.rules[at].reason for at, refused in enumerate(refusals) if row in refused]
        assert [shortfall.reason for shortfall in miss.shortfalls] == refusing


def compare_changes(roost: Roost, request: Request, told: Explanation) -> None:
    """Make every change that could be offered, and see whether it is exactly those that fit."""
    query = roost.scheduler._shapes.get(request, state=roost.state, now_s=1000.0).query
    wanted = []
    for asked in relaxations.query_amounts(query):
        smaller = (relaxations.reduce_amount(request, asked, amount) for amount in range(asked.amount - 1, 0, -1))
        wanted.extend([edit for edit in smaller if fits(roost, edit.request)][:1])
    wanted.extend([edit for edit in relaxations.fewer_groups(request, query) if fits(roost, edit.request)][:1])
    for tried in EDITS:
        wanted.extend(edit for edit in tried(request, roost.state) if fits(roost, edit.request))
    offered = [change for change in told.changes if change.kind != "count"]
    assert sorted(change.text for change in offered) == sorted(edit.text for edit in wanted)
    assert {change.text: change.request for change in offered} == {edit.text: edit.request for edit in wanted}
    assert all(change.hosts for change in told.changes)
    for change in told.changes:
        if change.kind == "count":
            assert fits(roost, change.request)
            assert not fits(roost, msgspec.structs.replace(change.request, count=change.request.count + 1))


def compare_tips(roost: Roost, request: Request, told: Explanation, options: dict[str, float]) -> None:
    """Move each multiplier a little less, and a little more, than is said to tip it."""
    decision = roost.decide(request, dry_run=True)
    assert [line.host for line in told.ranking[:5]] == [score.host for score in decision.best]
    assert [line.total for line in told.ranking[:5]] == pytest.approx([score.total for score in decision.best])
    for line in told.ranking:
        assert line.total == pytest.approx(sum(line.shares.values()))
    winner = told.ranking[0].host
    if len(told.ranking) > 1 and told.ranking[0].total - told.ranking[1].total < 1e-9:
        return  # Whose sum is the larger by the last bit may change with anything.
    for tip in told.tips:
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


def live(seed: int, *, acts: int) -> None:
    """Let requests come and go, and explain each before it is decided."""
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
        told = roost.explain(request)
        assert digest(roost.state) == before
        if request.count == 1:
            compare_counts(roost, request, told)
        if told.reason:
            compare_changes(roost, request, told)
            assert told.never is not None
            assert told.never.could_fit == roost.without_consumers().decide(request).is_granted
            assert told.never.could_fit == (not told.never.reason)
        elif request.count == 1:
            compare_tips(roost, request, told, options)
        decision = roost.decide(request)
        assert bool(told.reason) != decision.is_granted
        living.extend(pick.instance_uuid for pick in decision.picks)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_what_an_explanation_says_is_so(seed):
    live(seed, acts=8)


@pytest.mark.soak
@settings(max_examples=1_000, deadline=None)
@given(st.integers(0, 2**32))
def test_what_an_explanation_says_is_so_for_long(seed):
    live(seed, acts=20)
