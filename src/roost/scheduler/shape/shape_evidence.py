"""The evidence of a shape: stages, scales and the best hosts of a ranking."""

from collections.abc import Sequence

from roost.engine.columns.state import State
from roost.model.evidence.decision import HostScore, Scale, Stage
from roost.model.stored_decision import Checks
from roost.scheduler.framework.reasons import refusal_text
from roost.scheduler.shape.host_ranking import TABLE, Ranking
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.shape.shape_verdicts import ShapeVerdicts


class ShapeEvidence:
    """Describes the rankings of one shape.

    Args:
        state: the columns.
        verdicts: the checks.
        score_table: the weighers.
        stop_reason: why no host can match, regardless of the fleet; empty: hosts are judged.
    """

    def __init__(self, state: State, *, verdicts: ShapeVerdicts, score_table: ScoreTable, stop_reason: str) -> None:
        self._state = state
        self._verdicts = verdicts
        self._score_table = score_table
        self._stop_reason = stop_reason
        self._checks = verdicts.checks()
        # The latest stages, and the counts that they follow from.
        self._latest_stages: tuple[tuple[int, list[int]], list[Stage]] = ((-1, []), [])

    @property
    def checks(self) -> Checks:
        """The names of checks and weighers in the evidence, in its order."""
        return Checks(self._checks, self._score_table.names)

    def stages(self, ranking: Ranking) -> list[Stage]:
        """Return the evidence of filtering: one stage per check, in order."""
        if self._latest_stages[0] == (ranking.left, ranking.rejects):
            return self._latest_stages[1]
        stages = []
        before = sum(ranking.rejects) + ranking.left
        for (rule, reason), rejected in zip(self._checks, ranking.rejects, strict=True):
            stages.append(Stage(rule, before, before - rejected, reason))
            before -= rejected
        self._latest_stages = ((ranking.left, ranking.rejects), stages)
        return stages

    def reason(self, stages: Sequence[Stage], *, found: int = 0, requested: int = 1) -> str:
        """Return one line with the reason of a refusal; see ``refusal_text``."""
        return self._stop_reason or self._verdicts.failure or refusal_text(stages, found=found, requested=requested)

    def scales(self, ranking: Ranking) -> list[Scale]:
        """Return the evidence of weighing: the scales of raw weights."""
        return self._score_table.scales(ranking.scales)

    def table(self, ranking: Ranking, *, limit: int = TABLE) -> list[HostScore]:
        """Return the evidence of weighing: the best hosts with their raw weights."""
        names = self._state.hosts.names
        return self._score_table.lines(names, ranking.rows[:limit], raws=ranking.raws, totals=ranking.totals)
