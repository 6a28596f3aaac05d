"""Shelve an instance: stop it, save its disk, and take it off its host if the settings require it."""

import msgspec

from roost.conductor.moves.host_orders import send_order
from roost.conductor.operation.events import NOT_DONE, Event, Reply
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    end,
    new_order,
    release_lock,
    simple_order,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.stored_request import store_image
from roost.conductor.operation.watches import AT_ONCE, ON_HOST, WHILE_ALIVE, WITHIN_LIMIT, may_run
from roost.model.work.change_memory import Shelve
from roost.model.work.work_rows import Put
from roost.model.writes import Write
from roost.placement.writes.claims import plan_release


def begin(view: View, desk: Desk, body: Shelve) -> Commit:
    """Stop the instance if it runs or may run; otherwise save its disk, or offload it if it is volume-backed."""
    if body.is_on or may_run(view):
        return send_order(view, desk, body, host=view.status.host, action="power_off", step="off")
    return save(view, desk, body)


def begin_offload(view: View, desk: Desk, body: Shelve) -> Commit:
    """Order the host to destroy the guest."""
    return _offload(view, desk, body)


def save(view: View, desk: Desk, body: Shelve) -> Commit:
    """Order the host to save the disk; a volume-backed instance is offloaded at once."""
    if not body.is_saved:
        return _offload(view, desk, body, image_id=view.status.image_id)
    order = simple_order(view, limit_s=view.terms.build_timeout_s)
    return send_order(view, desk, body, host=view.status.host, action="save", order=order, step="save")


def shelve(view: View, desk: Desk, body: Shelve) -> Commit:
    """Set SHELVED, and offload at once if the settings require it; if the reply names no image, undo the stop."""
    saved = "" if view.reply.answer is None else view.reply.answer.saved
    if not saved:
        problem = f"{view.status.host} did not report the name of the saved image"
        return _restart(view, desk, body, problem=problem)
    image_id, writes = store_image(desk.current.state, msgspec.structs.replace(body.image, id=saved))
    if view.terms.shelved_offload_time_s == 0:
        return _offload(view, desk, body, image_id=image_id, writes=writes, saved=saved)
    lock = release_lock(view, status="SHELVED", fault="", image_id=image_id)
    event = story_line(view, desk, "shelve.done", image=saved)
    return Commit(operation=end(view, body=body), writes=writes, work=(*lock, event))


def restart(view: View, desk: Desk, body: Shelve) -> Commit:
    """If the instance ran before and its host is not gone, order its start; otherwise set SHUTOFF."""
    return _restart(view, desk, body, problem=view.reply.problem)


def finish_restart(view: View, desk: Desk, body: Shelve) -> Commit:
    """Keep the status; the fault gives the reason."""
    return _fail(view, desk, body, problem=body.lost)


def fail_restart(view: View, desk: Desk, body: Shelve) -> Commit:
    """Set SHUTOFF; the fault gives the reason."""
    problem = f"{body.lost}; and it could not be started again: {view.reply.problem}"
    return _fail(view, desk, body, problem=problem, status="SHUTOFF")


def finish_offload(view: View, desk: Desk, body: Shelve) -> Commit:
    """Set SHELVED_OFFLOADED and release all allocations; an absent host destroys the guest on its return."""
    lock = release_lock(view, status="SHELVED_OFFLOADED", fault="", host="", node="")
    return Commit(
        operation=end(view, body=body),
        writes=plan_release(desk.current.state, [view.status.uuid]),
        work=(*lock, story_line(view, desk, "offload.done", host=view.status.host)),
    )


def fail_offload(view: View, desk: Desk, body: Shelve) -> Commit:
    """Keep SHELVED and the allocations; the fault gives the reason."""
    return _fail(view, desk, body, problem=f"{view.status.host} could not destroy it: {_reason(view.reply)}")


def fail(view: View, desk: Desk, body: Shelve) -> Commit:
    """Record the fault; the status stays."""
    return _fail(view, desk, body, problem=view.reply.problem)


def _restart(view: View, desk: Desk, body: Shelve, *, problem: str) -> Commit:
    host, after = view.status.host, msgspec.structs.replace(body, lost=problem)
    if not body.is_on or view.is_away(host):
        return _fail(view, desk, body, problem=problem, status="SHUTOFF")
    return send_order(view, desk, after, host=host, action="power_on", step="back")


def _offload(
    view: View,
    desk: Desk,
    body: Shelve,
    *,
    image_id: int | None = None,
    writes: tuple[Write, ...] = (),
    saved: str = "",
) -> Commit:
    """Order the host to destroy the guest.

    Args:
        image_id: document of the saved image; None: the instance is shelved already.
    """
    order = new_order(view, desk, view.status.host, action="destroy", body=simple_order(view))
    operation = wait_until(view, view.now_s + view.terms.act_timeout_s, step="offload", body=body)
    if image_id is None:
        return Commit(operation=operation, work=(Put(order),))
    changes = {"status": "SHELVED", "task": "offloading", "fault": "", "image_id": image_id}
    status = replace_row(next_version(view.status, changed_at_s=view.now_s, **changes))
    event = story_line(view, desk, "shelve.done", image=saved)
    return Commit(operation=operation, writes=writes, work=(status, Put(order), event))


def _reason(reply: Reply) -> str:
    """Return the reported reason why a host did not destroy a guest."""
    return "" if reply.answer is None else reply.answer.problem or reply.answer.outcome


def _fail(view: View, desk: Desk, body: Shelve, *, problem: str, status: str = "") -> Commit:
    """End without success.

    Args:
        status: of the instance from now on; empty: it stays.
    """
    lock = release_lock(view, status=status or view.status.status, fault=problem)
    event = story_line(view, desk, f"{view.operation.kind}.failed", problem=problem)
    return Commit(operation=end(view, body=body, problem=problem), work=(*withdraw_orders(view.orders), *lock, event))


_OFFLOAD = State[Shelve](
    WHILE_ALIVE,
    {
        Event.DONE | Event.HOST_GONE: To(finish_offload, "end"),
        Event.FAILED | Event.ABORTED: To(fail_offload, "end"),
    },
)
OFFLOAD_TABLE = Table(
    Shelve,
    {"send": State(AT_ONCE, {Event.STARTED: To(begin_offload, "offload")}), "offload": _OFFLOAD},
    first=("send",),
    cancel=To(fail, "end"),
    about="Offload a shelved instance from its host. While the host is up, the operation waits for its answer.",
)
TABLE = Table(
    Shelve,
    {
        "send": State(ON_HOST, {Event.STARTED: To(begin, "off", "save", "offload"), Event.HOST_GONE: To(fail, "end")}),
        "off": State(WITHIN_LIMIT, {Event.DONE: To(save, "save", "offload"), NOT_DONE: To(fail, "end")}),
        "save": State(
            WITHIN_LIMIT,
            {
                Event.DONE: To(shelve, "offload", "back", "end"),
                Event.HOST_GONE: To(restart, "end"),
                Event.FAILED | Event.ABORTED | Event.TIMED_OUT: To(restart, "back", "end"),
            },
        ),
        "back": State(WITHIN_LIMIT, {Event.DONE: To(finish_restart, "end"), NOT_DONE: To(fail_restart, "end")}),
        "offload": _OFFLOAD,
    },
    first=("send",),
    cancel=To(fail, "end"),
)
