"""What came of the last order of an operation, where a host is asked for one thing after the other."""

from typing import NamedTuple

from roost.conductor.step import View, answer_of, is_open
from roost.model.orders import Answer


class Came(NamedTuple):
    """What came of an order: an answer, or that there will be none."""

    problem: str  # why it was not done, as far as is known; empty: it was
    answer: Answer | None = None  # None: nobody answered in time


def came_of(view: View, *, limit_at_s: float) -> Came | None:
    """Return what came of the last order; None: its host may still answer.

    Args:
        limit_at_s: so long that is waited for, in seconds since the epoch.
    """
    order, host = view.orders[-1], view.status.host
    if not is_open(order):
        answer = answer_of(order)
        return Came("" if answer.outcome == "ok" else answer.problem or answer.outcome, answer)
    if view.is_away(order.host):
        return Came(gone(host))
    return None if view.now_s < limit_at_s else Came(f"{host} did not answer in time")


def gone(host: str) -> str:
    """Say that the agent of a host is away."""
    return f"the agent of {host} does not answer"
