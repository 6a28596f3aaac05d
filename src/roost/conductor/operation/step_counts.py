"""The metrics of committed steps: ended operations, builds and orders."""

from roost.conductor.operation.step import Commit, Step
from roost.model.work.work_rows import OrderRow
from roost.observe import work_metrics

_SPAWN = "spawn"  # the action of an order to build, and the kind of the operation of one build


def count_step(step: Step) -> None:
    """Count a committed step."""
    operation = step.operation
    for put in step.work:
        if isinstance(put.row, OrderRow) and put.expected is None:
            work_metrics.ORDERS.labels(put.row.action).inc()
            if put.row.action == _SPAWN and operation.kind != "evacuate":
                work_metrics.BUILDS_STARTED.inc()
                if operation.kind == _SPAWN:  # The first attempt belongs to an operation of another kind.
                    work_metrics.BUILD_RETRIES.inc()
    if not isinstance(step, Commit):
        return
    for _, has_failed in step.builds:
        work_metrics.BUILDS_ENDED.labels("failed" if has_failed else "succeeded").inc()
    if operation.outcome:
        work_metrics.OPERATIONS_ENDED.labels(operation.kind, operation.outcome).inc()
        elapsed_s = max(0.0, operation.changed_at_s - operation.created_at_s)
        work_metrics.OPERATION_SECONDS.labels(operation.kind).observe(elapsed_s)
