"""An instance starts, stops or begins anew: one order to its host.

.. code-block:: text

    send ─▶ wait   the order is out
    wait ─▶ end    it was done: ACTIVE or SHUTOFF; else the status stays, and the fault says why
"""

from collections.abc import Mapping

from roost.conductor.moves.ask_host import asked
from roost.conductor.moves.wait_for_host import came_of, silent
from roost.conductor.operation.step import Commit, Desk, View, body_of, ended, let_go, told, withdrawn
from roost.model.work.operation import Powering
from roost.model.work.orders import Action

# By kind of operation: what the host is told, and the status when that is done.
_ACTS: Mapping[str, tuple[Action, str]] = {
    "start": ("power_on", "ACTIVE"),
    "stop": ("power_off", "SHUTOFF"),
    "reboot": ("reboot", "ACTIVE"),
}


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body, host = body_of(view.operation, Powering), view.status.host
    if view.operation.is_cancelled:
        return _end(view, desk, body, problem="it was cancelled")
    if view.operation.step == "send":
        if view.is_away(host):
            return _end(view, desk, body, problem=silent(host))
        action, _ = _ACTS[view.operation.kind]
        return asked(view, desk, body, host=host, action=action, step="wait")
    came = came_of(view, body)
    return came if isinstance(came, Commit) else _end(view, desk, body, problem=came.problem)


def _end(view: View, desk: Desk, body: Powering, *, problem: str) -> Commit:
    kind = view.operation.kind
    gone = let_go(view, fault=problem) if problem else let_go(view, status=_ACTS[kind][1], fault="")
    event = told(view, desk, f"{kind}.failed" if problem else f"{kind}.done", problem=problem)
    return Commit(operation=ended(view, body=body, problem=problem), work=(*withdrawn(view.orders), *gone, event))
