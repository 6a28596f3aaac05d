"""The metrics of decisions, and their counts for the history of the fleet."""

from roost.model.evidence.decision import Decision
from roost.model.evidence.fleet_history import DecisionCounts
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.observe import work_metrics
from roost.scheduler.framework.reasons import classify_refusal


class DecisionTotals:
    """Counts decisions. One thread counts; any thread may read."""

    def __init__(self) -> None:
        self._granted = self._failed = 0
        self._refused: dict[str, int] = {}

    def count_granted(self) -> None:
        """Count a granted decision."""
        self._granted += 1

    def count_failed(self) -> None:
        """Count a request that ended with an error."""
        self._failed += 1

    def count_refused(self, rule: str, reason: str) -> None:
        """Count a refused decision, by the labels of ``work_metrics.REFUSALS``."""
        key = f"{rule}/{reason}"
        self._refused[key] = self._refused.get(key, 0) + 1

    def read(self) -> DecisionCounts:
        """Return the counts since the start of the process."""
        return DecisionCounts(self._granted, self._failed, self._refused.copy())


# The decisions of this process since its start.
DECISION_TOTALS = DecisionTotals()


def count_result(
    act: Request | NamedRequest | Departure, result: Decision | Exception | None, elapsed_s: float
) -> None:
    """Count the result of a request; departures do not count.

    Args:
        act: the request or departure.
        result: its decision or error.
        elapsed_s: seconds since its arrival.
    """
    if isinstance(act, Departure):
        return
    if not isinstance(result, Decision):
        work_metrics.DECISIONS.labels("failed").inc()
        DECISION_TOTALS.count_failed()
        return
    work_metrics.DECISIONS.labels(result.outcome).inc()
    work_metrics.DECISION_SECONDS.observe(elapsed_s)
    work_metrics.SEARCH_SECONDS.observe(result.search_s + result.rank_s)
    if result.is_granted:
        DECISION_TOTALS.count_granted()
        return
    rule, reason = classify_refusal(result)
    work_metrics.REFUSALS.labels(rule, reason).inc()
    DECISION_TOTALS.count_refused(rule, reason)
