"""An instance starts, stops or begins anew: one order to its host.

.. code-block:: text

    send ─▶ wait   the order is out
    wait ─▶ end    it was done: ACTIVE or SHUTOFF; else the status stays, and the fault says why
"""

from collections.abc import Mapping

from roost.conductor.moves.ask_host import send_order
from roost.conductor.moves.wait_for_host import came_of, silence_problem
from roost.conductor.operation.step import Commit, Desk, View, body_of, end, release_lock, story_line, withdraw_orders
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
            return _end(view, desk, body, problem=silence_problem(host))
        action, _ = _ACTS[view.operation.kind]
        return send_order(view, desk, body, host=host, action=action, step="wait")
    came = came_of(view, body)
    return came if isinstance(came, Commit) else _end(view, desk, body, problem=came.problem)


def _end(view: View, desk: Desk, body: Powering, *, problem: str) -> Commit:
    kind = view.operation.kind
    gone = release_lock(view, fault=problem) if problem else release_lock(view, status=_ACTS[kind][1], fault="")
    event = story_line(view, desk, f"{kind}.failed" if problem else f"{kind}.done", problem=problem)
    return Commit(operation=end(view, body=body, problem=problem), work=(*withdraw_orders(view.orders), *gone, event))
