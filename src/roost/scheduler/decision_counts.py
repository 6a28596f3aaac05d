"""The metrics of decisions."""

from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.observe import work_metrics
from roost.scheduler.framework.reasons import classify_refusal


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
        return
    work_metrics.DECISIONS.labels(result.outcome).inc()
    work_metrics.DECISION_SECONDS.observe(elapsed_s)
    work_metrics.SEARCH_SECONDS.observe(result.search_s + result.rank_s)
    if not result.is_granted:
        work_metrics.REFUSALS.labels(*classify_refusal(result)).inc()
