"""The whole scheduler and its slow twin decide alike, and give the same evidence."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.app import Roost
from roost.engine.candidates.search import search
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure
from roost.placement.current import Current
from roost.scheduler.query.prefilters import PREFILTERS
from roost.store.memory_store import MemoryStore
from tests.reference import scheduler as slow
from tests.reference.plain_worlds import FILTERS, fleet_of, random_options, random_wish, random_world, request_of
from tests.support.fleets.forests import compiled_of, result_of, state_of, uuid_of
from tests.support.fleets.worlds import digest, roost_on, settings_of


def first_candidate(world: slow.World, wish: slow.Wish, host: slow.Host) -> frozenset[tuple[str, str, int]]:
    """Return the candidate that the search, on columns made from the plain world, finds first."""
    state = state_of(world.forest)
    query = slow.query_of(world, wish)
    anchor = state.providers.row_of_name[host.name]
    return result_of(state, next(search(state, compiled_of(state, query), anchors=(anchor,))))[0]


def held_by(pick, names: dict[str, str]) -> frozenset[tuple[str, str, int]]:
    return frozenset(
        (names[uuid], resource_class, amount)
        for uuid, amounts in pick.allocations.items()
        for resource_class, amount in amounts.items()
    )


def compare(world: slow.World, decision: Decision, outcome: slow.Outcome) -> None:
    names = {str(uuid_of(name)): name for name in world.forest}
    assert decision.is_granted == outcome.is_granted
    if outcome.is_granted:
        assert [pick.host for pick in decision.picks] == [host.name for host in outcome.chosen]
        assert [held_by(pick, names) for pick in decision.picks] == outcome.held
        found = {cell: [pick.host for pick in picks] for cell, picks in decision.alternates.items()}
        assert found == {cell: hosts for cell, hosts in outcome.alternates.items() if hosts or cell in found}
    else:
        assert (decision.picks, decision.alternates) == ([], {})
        if decision.reason.startswith("No such host"):  # Told before any host is looked at; the twin looks at all.
            named = decision.reason.split()[5].lower()
            assert named not in [host.name.lower() for host in world.hosts]
            assert {stage.after for stage in decision.stages} == {0}
            return
        assert f"0 of {len(world.hosts)} hosts" in decision.reason
        if decision.count > 1:
            assert f"room for {len(outcome.chosen)} of {decision.count} instances" in decision.reason
    compare_stages(decision, outcome.first if outcome.is_granted else outcome.last)
    compare_scores(decision, outcome.first)


def compare_stages(decision: Decision, ranking: slow.Ranking) -> None:
    """Every stage starts with what the one before left; those of the search and of pre-filters count as one."""
    told: list[tuple[str, int, int]] = []
    for stage in decision.stages:
        assert not told or stage.before == told[-1][2]
        rule = "search" if stage.rule in PREFILTERS else stage.rule
        if told and told[-1][0] == rule == "search":
            told[-1] = ("search", told[-1][1], stage.after)
        else:
            told.append((rule, stage.before, stage.after))
    assert told == ranking.stages


def compare_scores(decision: Decision, ranking: slow.Ranking) -> None:
    assert [score.host for score in decision.best] == [host.name for host in ranking.hosts[:5]]
    assert [score.total for score in decision.best] == ranking.totals[:5]
    if len(ranking.hosts) > 1:
        for score, raws in zip(decision.best, ranking.raws, strict=False):
            assert decision.raws(score) == [raws[scale.weigher] for scale in decision.scales]
            assert sum(cell.contribution for cell in decision.table()[score.host]) == pytest.approx(score.total)


def live(seed: int, *, acts: int) -> None:
    """Let both schedulers serve the same requests and departures."""
    random = Random(seed)
    world = random_world(random)
    fresh = dict(world.forest)
    options, attempts = random_options(random), random.choice((1, 2, 3, 4))
    store = MemoryStore()
    roost = roost_on(store, settings=settings_of(enabled_filters=FILTERS, max_attempts=attempts, options=options))
    roost.install(fleet_of(world))
    empty = digest(roost.state)
    for _ in range(acts):
        if world.instances and random.random() < 0.35:
            leaving = random.sample(sorted(world.instances), random.randint(1, min(3, len(world.instances))))
            assert roost.work([Departure(instance_uuids=(*leaving, str(uuid_of("nobody"))))]) == [None]
            for uuid in leaving:
                slow.give_back(world, uuid)
            continue
        wish = random_wish(random, world)
        decision = roost.decide(request_of(wish))
        outcome = slow.decide(world, wish, enabled=FILTERS, options=options, attempts=attempts, first=first_candidate)
        compare(world, decision, outcome)
        for number, pick in enumerate(decision.picks):
            world.instances[pick.instance_uuid] = world.instances.pop(f"new-{number}")
    assert digest(Current(store).state) == digest(roost.state)
    leave_all(roost, world)
    assert world.forest == fresh
    assert {**digest(roost.state), "generations": {}} == {**empty, "generations": {}}


def leave_all(roost: Roost, world: slow.World) -> None:
    roost.work([Departure(instance_uuids=(uuid,)) for uuid in world.instances])
    for uuid in list(world.instances):
        slow.give_back(world, uuid)


@settings(max_examples=70)
@given(st.integers(0, 2**32))
def test_the_scheduler_decides_as_its_slow_twin_does(seed):
    live(seed, acts=12)


@pytest.mark.soak
@settings(max_examples=3_000)
@given(st.integers(0, 2**32))
def test_the_scheduler_decides_as_its_slow_twin_does_for_long(seed):
    live(seed, acts=40)
