"""How long a host is waited for, and what is made of its silence."""

from collections.abc import Callable
from typing import NamedTuple

from roost.conductor.operation.step import Commit, View, answer_of, is_open, order_limit_s, wait_until
from roost.model.work.change_memory import Rebuilding, Shelve, Unshelve
from roost.model.work.operation import Moving, Powering, Settling
from roost.model.work.orders import Answer

# What operations remember that know until when a host may take its time.
Awaiting = Moving | Settling | Powering | Rebuilding | Shelve | Unshelve

# A host that could not do what it must is asked again after so many seconds; so is one looked for that is away, or
# that holds what is not decided yet.
PAUSE_S = 10.0


class Came(NamedTuple):
    """What came of an order: an answer, or that there will be none."""

    problem: str  # why it was not done, as far as is known; empty: it was
    answer: Answer | None = None  # None: nobody answered in time


def silence_problem(host: str) -> str:
    """Say that nothing is to be expected of a host."""
    return f"the agent of {host} does not answer"


def target_problem(view: View, host: str) -> str:
    """Say why nothing new is sent to a host, as by alternates that were chosen a while ago; empty: it is up."""
    agent = view.agent(host)
    if agent is None:
        return f"no agent runs on {host}"
    if view.is_away(host):
        return silence_problem(host)
    return "" if agent.state == "ready" else f"{host} is back, and not rid yet of what is elsewhere by now"


def problem_of(answer: Answer, *, host: str) -> str:
    """Say what went wrong with an order that was answered; empty: it was done.

    Args:
        host: that answered.
    """
    return "" if answer.outcome == "ok" else answer.problem or f"{host} said no more than {answer.outcome}"


def came_of(view: View, body: Awaiting) -> Came | Commit:
    """Return what came of the last order, or the step that waits for its answer.

    Args:
        body: with the moment until which its host may take its time.
    """
    order = view.orders[-1]
    agent = view.agent(order.host)
    host = order.host if agent is None else agent.name  # As it is written.
    if not is_open(order):
        answer = answer_of(order)
        return Came(problem_of(answer, host=host), answer)
    if view.is_away(order.host):
        return Came(silence_problem(host))
    if view.now_s < body.limit_at_s:
        return Commit(operation=wait_until(view, body.limit_at_s))
    return Came(f"{host} did not answer within {order_limit_s(order):,.0f} s")


def awaited(view: View) -> Commit | None:
    """Return the step that waits for a host that is alive, however long it takes; None: it answered, or is away."""
    order = view.orders[-1]
    if not is_open(order) or view.is_away(order.host):
        return None
    return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s))


def paused(view: View, *, limit_at_s: float) -> Commit | None:
    """Return the step that waits before a host is asked again; None: it was asked long enough ago."""
    return Commit(operation=wait_until(view, limit_at_s)) if view.now_s < limit_at_s else None


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
