"""How long a host is waited for, and what is made of its silence."""

from collections.abc import Callable
from typing import NamedTuple

from roost.conductor.step import Commit, View, answer_of, is_open, waiting
from roost.model.orders import Answer

# A host that could not do what it must is asked again after so many seconds; so is one looked for that is away.
PAUSE_S = 10.0


class Came(NamedTuple):
    """What came of an order: an answer, or that there will be none."""

    problem: str  # why it was not done, as far as is known; empty: it was
    answer: Answer | None = None  # None: nobody answered in time


def silent(host: str) -> str:
    """Say that nothing is to be expected of a host."""
    return f"the agent of {host} does not answer"


def failure(view: View, *, limit_at_s: float, limit_s: float) -> str | None:
    """Say what went wrong with the last order; empty: it was done. None: it is waited for.

    Args:
        limit_at_s: until then its host may take its time.
        limit_s: as the settings say how long that is.
    """
    order = view.orders[-1]
    if not is_open(order):
        answer = answer_of(order)
        return "" if answer.outcome == "ok" else answer.problem or f"{order.host} said no more than {answer.outcome}"
    if view.is_away(order.host):
        return silent(order.host)
    return None if view.now_s < limit_at_s else f"{order.host} did not answer within {limit_s:,.0f} s"


def came_of(view: View, *, limit_at_s: float) -> Came | None:
    """Return what came of the last order, where its answer says more than that it was done; None: it is waited for.

    Args:
        limit_at_s: until then its host may take its time.
    """
    order = view.orders[-1]
    if not is_open(order):
        answer = answer_of(order)
        return Came("" if answer.outcome == "ok" else answer.problem or answer.outcome, answer)
    if view.is_away(order.host):
        return Came(silent(view.status.host))
    return None if view.now_s < limit_at_s else Came(f"{view.status.host} did not answer in time")


def awaited(view: View) -> Commit | None:
    """Return the step that waits for a host that is alive, however long it takes; None: it answered, or is away."""
    order = view.orders[-1]
    if not is_open(order) or view.is_away(order.host):
        return None
    return Commit(operation=waiting(view, view.now_s + view.terms.act_timeout_s))


def paused(view: View, *, limit_at_s: float) -> Commit | None:
    """Return the step that waits before a host is asked again; None: it was asked long enough ago."""
    return Commit(operation=waiting(view, limit_at_s)) if view.now_s < limit_at_s else None


def unfinished(view: View, *, limit_at_s: float, again: Callable[[], Commit]) -> Commit | None:
    """Return the step that waits for a host, or asks it again what it could not do; None: it did it, or is away.

    Args:
        limit_at_s: when it is asked again at the earliest.
        again: by which it is.
    """
    order = view.orders[-1]
    if is_open(order):
        return awaited(view)
    return None if answer_of(order).outcome == "ok" else paused(view, limit_at_s=limit_at_s) or again()


def may_be_on(view: View) -> bool:
    """Say whether an instance may run whose status says that it does not: what was not answered may be done."""
    return bool(view.status.fault)
