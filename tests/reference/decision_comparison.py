"""Comparison of decisions and their evidence with those of the slow scheduler."""

import pytest

from roost.engine.candidates.search import search
from roost.model.evidence.decision import Decision
from roost.scheduler.query.prefilters import PREFILTERS
from tests.reference import scheduler as slow
from tests.support.fleets.forests import compiled_of, result_of, state_of, uuid_of


def first_candidate(world: slow.World, wish: slow.Wish, host: slow.Host) -> frozenset[tuple[str, str, int]]:
    """Return the first candidate of the search, on columns built from the plain world."""
    state = state_of(world.forest)
    query = slow.query_of(world, wish)
    anchor = state.providers.row_of_name[host.name]
    return result_of(state, next(search(state, compiled_of(state, query), anchors=(anchor,))))[0]


def allocations_of(pick, names: dict[str, str]) -> frozenset[tuple[str, str, int]]:
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
        assert [allocations_of(pick, names) for pick in decision.picks] == outcome.held
        found = {cell: [pick.host for pick in picks] for cell, picks in decision.alternates.items()}
        assert found == {cell: hosts for cell, hosts in outcome.alternates.items() if hosts or cell in found}
    else:
        assert (decision.picks, decision.alternates) == ([], {})
        if decision.reason.startswith("No such host"):  # The product stops before its rules; the twin runs them all.
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
    """Check that each stage continues the previous one, and compare; search and pre-filters count as one stage."""
    stages: list[tuple[str, int, int]] = []
    for stage in decision.stages:
        assert not stages or stage.before == stages[-1][2]
        rule = "search" if stage.rule in PREFILTERS else stage.rule
        if stages and stages[-1][0] == rule == "search":
            stages[-1] = ("search", stages[-1][1], stage.after)
        else:
            stages.append((rule, stage.before, stage.after))
    assert stages == ranking.stages


def compare_scores(decision: Decision, ranking: slow.Ranking) -> None:
    assert [score.host for score in decision.best] == [host.name for host in ranking.hosts[:5]]
    assert [score.total for score in decision.best] == ranking.totals[:5]
    if len(ranking.hosts) > 1:
        for score, raws in zip(decision.best, ranking.raws, strict=False):
            assert decision.raws(score) == [raws[scale.weigher] for scale in decision.scales]
            assert sum(cell.contribution for cell in decision.table()[score.host]) == pytest.approx(score.total)
