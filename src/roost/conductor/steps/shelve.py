"""An instance is shelved: its disk is saved, and by the settings or when asked it leaves its host.

.. code-block:: text

    send    ─▶ off       it runs, or may: it is stopped first
            ─▶ save      it does not
    off     ─▶ save      it is stopped
            ─▶ offload   so it is, and its disk is a volume, which nobody has to save
            ─▶ end       it could not be: the status stays, and the fault says why
    save    ─▶ offload   it is saved: SHELVED, and by the settings it leaves its host at once
            ─▶ end       it is saved: SHELVED, and holds what it held
            ─▶ back      it could not be, and it ran before
            ─▶ end       it could not be: SHUTOFF, and the fault says why
    back    ─▶ end       it runs again: ACTIVE, and the fault says why; else SHUTOFF
    offload ─▶ end       its host got rid of it, or was given up: it gives back what it holds, SHELVED_OFFLOADED
            ─▶ end       its host could not: SHELVED, and the fault says why

An operation ``offload`` begins with ``offload``. There a host that is alive is waited for, however long it takes.
"""

import msgspec

from roost.conductor.moves.ask_host import send_order
from roost.conductor.moves.wait_for_host import awaited, came_of, may_be_on, silence_problem
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    answer_of,
    body_of,
    end,
    is_open,
    new_order,
    release_lock,
    simple_order,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.operation.stored_request import store_image
from roost.model.work.change_memory import Shelve
from roost.model.work.work_rows import OrderRow, Put
from roost.model.writes import Write
from roost.placement.writes.claims import given_back


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body, step = body_of(view.operation, Shelve), view.operation.step
    if view.operation.is_cancelled:
        return _end(view, desk, body, problem="it was cancelled")
    if step == "send":
        return _send(view, desk, body)
    if step == "offload":
        return _offloading(view, desk, body)
    came = came_of(view, body)
    if isinstance(came, Commit):
        return came
    if step == "off":
        return _end(view, desk, body, problem=came.problem) if came.problem else _saving(view, desk, body)
    if step == "back":
        problem = f"{body.lost}; and it could not be started again: {came.problem}" if came.problem else body.lost
        return _end(view, desk, body, problem=problem, status="SHUTOFF" if came.problem else "")
    saved = "" if came.answer is None else came.answer.saved
    problem = came.problem or ("" if saved else f"{view.status.host} did not say what it was saved as")
    return _unsaved(view, desk, body, problem=problem) if problem else _saved(view, desk, body, saved=saved)


def _send(view: View, desk: Desk, body: Shelve) -> Commit:
    host = view.status.host
    if view.operation.kind == "offload":
        return _offload(view, desk, body)
    if view.is_away(host):
        return _end(view, desk, body, problem=silence_problem(host))
    if body.is_on or may_be_on(view):
        return send_order(view, desk, body, host=host, action="power_off", step="off")
    return _saving(view, desk, body)


def _saving(view: View, desk: Desk, body: Shelve) -> Commit:
    """Return the step that follows when it does not run."""
    if body.is_saved:
        said = simple_order(view, limit_s=view.terms.build_timeout_s)
        return send_order(view, desk, body, host=view.status.host, action="save", said=said, step="save")
    return _offload(view, desk, body, image_id=view.status.image_id)


def _unsaved(view: View, desk: Desk, body: Shelve, *, problem: str) -> Commit:
    """Return what follows where its disk could not be saved: it is as it was, if it can be."""
    host, after = view.status.host, msgspec.structs.replace(body, lost=problem)
    if not body.is_on or view.is_away(host):
        return _end(view, desk, body, problem=problem, status="SHUTOFF")
    return send_order(view, desk, after, host=host, action="power_on", step="back")


def _saved(view: View, desk: Desk, body: Shelve, *, saved: str) -> Commit:
    image_id, writes = store_image(desk.current.state, msgspec.structs.replace(body.image, id=saved))
    if view.terms.shelved_offload_time_s == 0:
        return _offload(view, desk, body, image_id=image_id, writes=writes, saved=saved)
    gone_on = release_lock(view, status="SHELVED", fault="", image_id=image_id)
    event = story_line(view, desk, "shelve.done", image=saved)
    return Commit(operation=end(view, body=body), writes=writes, work=(*gone_on, event))


def _offload(
    view: View,
    desk: Desk,
    body: Shelve,
    *,
    image_id: int | None = None,
    writes: tuple[Write, ...] = (),
    saved: str = "",
) -> Commit:
    """Return the step that lets its host get rid of it.

    Args:
        image_id: that it is shelved as from now on; None: it is shelved already.
    """
    order = new_order(view, desk, view.status.host, action="destroy", body=simple_order(view))
    operation = wait_until(view, view.now_s + view.terms.act_timeout_s, step="offload", body=body)
    if image_id is None:
        return Commit(operation=operation, work=(Put(order),))
    held = next_version(
        view.status, status="SHELVED", task="offloading", fault="", image_id=image_id, changed_at_s=view.now_s
    )
    event = story_line(view, desk, "shelve.done", image=saved)
    return Commit(operation=operation, writes=writes, work=(replace_row(held), Put(order), event))


def _offloading(view: View, desk: Desk, body: Shelve) -> Commit:
    waits = awaited(view)
    if waits is not None:
        return waits
    problem = _left(view.orders[-1])
    if problem:
        return _end(view, desk, body, problem=f"{view.status.host} could not get rid of it: {problem}")
    gone_on = release_lock(view, status="SHELVED_OFFLOADED", fault="", host="", node="")
    return Commit(
        operation=end(view, body=body),
        writes=given_back(desk.current.state, [view.status.uuid]),
        work=(*gone_on, story_line(view, desk, "offload.done", host=view.status.host)),
    )


def _left(order: OrderRow) -> str:
    """Say why a host may still have something of the instance; empty: it has not, or gets rid of it on its return."""
    if is_open(order):
        return ""
    answer = answer_of(order)
    return "" if answer.outcome == "ok" else answer.problem or answer.outcome


def _end(view: View, desk: Desk, body: Shelve, *, problem: str, status: str = "") -> Commit:
    """Return the end of what was not done.

    Args:
        status: of the instance from now on; empty: as it is.
    """
    gone_on = release_lock(view, status=status or view.status.status, fault=problem)
    event = story_line(view, desk, f"{view.operation.kind}.failed", problem=problem)
    return Commit(
        operation=end(view, body=body, problem=problem), work=(*withdraw_orders(view.orders), *gone_on, event)
    )
