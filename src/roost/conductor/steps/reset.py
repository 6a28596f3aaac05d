"""An instance in ERROR is what its host says that it is.

.. code-block:: text

    send ─▶ wait   the host is asked what there is of the instance
    wait ─▶ end    it runs, or is stopped: ACTIVE or SHUTOFF; else ERROR stays, and the fault says why
"""

from roost.conductor.asking import asked
from roost.conductor.patience import Came, came_of, silent
from roost.conductor.step import Commit, Desk, View, body_of, ended, let_go, told, waiting, withdrawn
from roost.model.operation import Power

_STATUSES = {"running": "ACTIVE", "stopped": "SHUTOFF"}
_OPEN = frozenset({"moving", "finished", "reverting"})


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body, host = body_of(view.operation, Power), view.status.host
    if view.operation.is_cancelled:
        return _end(view, desk, body, problem="it was cancelled")
    if view.operation.step == "send":
        if view.is_away(host):
            return _end(view, desk, body, problem=silent(host))
        return asked(view, desk, body, host=host, action="inspect", step="wait")
    came = came_of(view, limit_at_s=body.limit_at_s)
    if came is None:
        return Commit(operation=waiting(view, body.limit_at_s))
    found = _found(came)
    problem = came.problem or _problem(view, desk, found)
    return _end(view, desk, body, problem=problem, status=_STATUSES.get(found, ""))


def _found(came: Came) -> str:
    """Return the state in which the host has the instance; empty: it has nothing of it."""
    return came.answer.found.state if came.answer is not None and came.answer.found is not None else ""


def _problem(view: View, desk: Desk, found: str) -> str:
    """Say why an instance is not well, although its host answers."""
    if view.status.uuid not in desk.current.state.holders:
        return "nothing is held for it"
    if any(move.status in _OPEN for move in view.migrations):
        return "a move of it is not settled"
    if not found:
        return f"{view.status.host} has nothing of it"
    return "" if found in _STATUSES else f"{view.status.host} has it as {found}"


def _end(view: View, desk: Desk, body: Power, *, problem: str, status: str = "") -> Commit:
    gone_on = let_go(view) if problem else let_go(view, status=status, fault="")
    event = told(
        view, desk, "reset.failed" if problem else "reset.done", problem=problem, status="" if problem else status
    )
    return Commit(
        operation=ended(view, body=body, problem=problem), work=(*withdrawn(view.orders), *gone_on, event)
    )  # fmt: skip
