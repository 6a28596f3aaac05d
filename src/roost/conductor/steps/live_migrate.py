"""Migrate a running instance to another host.

If the migration fails, or the source does not answer, both hosts are inspected to find the guest.
"""

import msgspec

from roost.conductor.moves import targets, try_targets
from roost.conductor.moves.endings import finish_move, hand_over, keep_on_source
from roost.conductor.moves.host_orders import send_order, send_until_done
from roost.conductor.moves.try_targets import target_of, with_address
from roost.conductor.operation.events import Event, Reply
from roost.conductor.operation.step import Commit, Desk, View, answer_of, is_open, simple_order, wait_until
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import (
    AT_ONCE,
    PAUSE_S,
    UNTIL_DONE,
    WITHIN_LIMIT,
    Watch,
    find_reply,
    retry_after_pause,
    silence_problem,
    wait_for_answer,
)
from roost.model.names import uuid_text
from roost.model.work.guest import GuestReport
from roost.model.work.operation import InstanceMove
from roost.model.work.orders import Action, Answer, OrderBody
from roost.model.work.work_rows import OrderRow

# Upper bound on orders to a target to discard its reservation.
_DISCARDS_MAX = 3
_WHOLE = frozenset({"running", "stopped"})

# --- before anything moves ---


def send(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to reserve room. Without a target or a live source, keep the instance on its host."""
    return try_targets.try_first_target(view, desk, body, leave=try_targets.try_next_target)


def migrate(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the source to migrate the instance to the target."""
    source, move = view.status.host, with_address(view, body)
    if isinstance(move, str):
        return _clear_target(view, desk, body, lost=move)
    if view.is_away(source):
        return _clear_target(view, desk, body, lost=silence_problem(source))
    order = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=view.terms.build_timeout_s, to=move.prepared)
    return send_order(view, desk, move, host=source, action="live_migrate", order=order, step="migrate")


def try_next_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Claim the next alternate and order it to reserve room, in one commit; with none left, keep the instance."""
    return try_targets.try_next_target(view, desk, body, problem=view.reply.problem)


def give_up(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Keep the instance on its host: no other target can succeed."""
    return try_targets.try_next_target(view, desk, body, problem=view.reply.problem, is_final=True)


def clear_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to discard its reservation, if any."""
    lost = f"{target_of(body)} reserved no room within {view.terms.act_timeout_s:,.0f} s"
    return _clear_target(view, desk, body, lost=lost)


def clear_again(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to discard again, up to three times."""
    return _clear_target(view, desk, body, lost=body.lost)


def leave_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Continue with the next target: the migration had not begun, so no guest can run on this one."""
    is_final = view.is_away(view.status.host)
    return try_targets.try_next_target(view, desk, body, problem=body.lost, is_final=is_final)


def _clear_target(view: View, desk: Desk, body: InstanceMove, *, lost: str) -> Commit:
    return _send(view, desk, body, host=target_of(body), actions=("discard",), step="clear", lost=lost)


# --- where the instance is ---


def arrive(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Put the instance on the target, and release its old allocations."""
    return finish_move(view, desk, body, status="ACTIVE", is_clean=True)


def inspect_source(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Abort the migration, and inspect the guest on the source."""
    late = f"it did not move within {view.terms.build_timeout_s:,.0f} s"
    lost = late if view.reply.event is Event.TIMED_OUT else view.reply.problem
    return _inspect(view, desk, body, host=view.status.host, lost=lost)


def inspect_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Inspect the guest on the target."""
    return _inspect(view, desk, body, host=target_of(body), lost=silence_problem(view.status.host))


def inspect_again(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Inspect the guest on the same host again."""
    return _inspect(view, desk, body, host=view.orders[-1].host)


def inspect_other(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Wait if both hosts are gone, or if the source has reported no guest; otherwise inspect the other host."""
    other = _other_host(view, body)
    if view.is_away(other) or _has_nothing(_source_report(view)):
        return Commit(operation=wait_until(view, view.now_s + PAUSE_S))
    return _inspect(view, desk, body, host=other)


def judge(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Use the report to find the host of the guest; if it does not suffice, inspect the other host."""
    order, answer = view.orders[-1], view.reply.answer
    assert answer is not None, "the host has answered"
    if not _is_source(view, order.host):
        return _judge_target(view, desk, body, guest=answer.found)
    if _has_whole(answer):
        return undo(view, desk, body)
    return _inspect(view, desk, body, host=target_of(body))


def _inspect(view: View, desk: Desk, body: InstanceMove, *, host: str, lost: str = "") -> Commit:
    """Inspect the guest on a host. The source aborts the migration first, so nothing moves once it has answered."""
    actions: tuple[Action, ...] = ("abort_migration", "inspect") if _is_source(view, host) else ("inspect",)
    return _send(view, desk, body, host=host, actions=actions, step="look", lost=lost or body.lost)


def _judge_target(view: View, desk: Desk, body: InstanceMove, *, guest: GuestReport | None) -> Commit:
    source, is_only_here = view.status.host, _has_nothing(_source_report(view))
    if guest is not None and (guest.state == "running" or (guest.state in _WHOLE and is_only_here)):
        status = "ACTIVE" if guest.state == "running" else "SHUTOFF"
        if is_only_here or view.is_away(source):
            return finish_move(view, desk, body, status=status, is_clean=is_only_here)
        return _send(view, desk, body, host=source, actions=("destroy",), step="sweep", lost=body.lost)
    if is_only_here or view.is_away(source):
        return undo(view, desk, body)
    return _inspect(view, desk, body, host=source)


# --- back to the source ---


def undo(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to discard its reservation, but to keep a guest that runs there by now."""
    is_sparing = not _is_on_source(view)
    order = msgspec.structs.replace(simple_order(view, limit_s=view.terms.act_timeout_s), is_sparing=is_sparing)
    return send_until_done(view, desk, body, host=target_of(body), actions=("discard",), step="undo", order=order)


def keep(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Keep the instance on the source, or on the target if its guest runs there; if neither has it, set ERROR."""
    report, guest = _source_report(view), None if view.reply.answer is None else view.reply.answer.found
    if view.reply.event is Event.DONE and not _is_on_source(view) and _is_spared(view, guest):
        return _judge_target(view, desk, body, guest=guest)
    if report is None or _has_whole(report):
        is_stopped = report is not None and report.found is not None and report.found.state == "stopped"
        return keep_on_source(view, desk, body, problem=body.lost, status="SHUTOFF" if is_stopped else "")
    problem = f"{body.lost}; and neither {view.status.host} nor {target_of(body)} has it"
    return keep_on_source(view, desk, body, problem=problem, status="ERROR")


def keep_or_inspect(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Keep the instance on the source if it is known to be there; otherwise inspect the source, or wait."""
    if _is_on_source(view):
        return keep(view, desk, body)
    source = view.status.host
    if view.is_away(source) or _has_nothing(_source_report(view)):
        return Commit(operation=wait_until(view, view.now_s + PAUSE_S))
    return _inspect(view, desk, body, host=source)


def finish_sweep(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Put the instance on the target; an absent source keeps its allocations until its return."""
    return finish_move(view, desk, body, status="ACTIVE", is_clean=view.reply.event is Event.DONE)


def sweep_again(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the source again to destroy its copy."""
    host = view.orders[-1].host
    return _send(view, desk, body, host=host, actions=("destroy",), step="sweep", lost=body.lost)


# --- shared ---


def _send(
    view: View, desk: Desk, body: InstanceMove, *, host: str, actions: tuple[Action, ...], step: str, lost: str
) -> Commit:
    """Send orders after a migration failed.

    Args:
        lost: why it failed.
    """
    after = msgspec.structs.replace(body, lost=lost)
    return send_until_done(view, desk, after, host=host, actions=actions, step=step)


def _may_discard_again(view: View) -> bool:
    """Return whether to repeat a failed order to discard; after the last attempt, leftovers of the guest cannot run."""
    order = view.orders[-1]
    is_bad = not is_open(order) and answer_of(order).outcome != "ok"
    tries = [each for each in view.orders if (each.action, each.host) == ("discard", order.host)]
    return is_bad and len(tries) < _DISCARDS_MAX and not view.is_away(order.host)


def _source_report(view: View) -> Answer | None:
    """Return the last report of the source about its guest; None: there is none."""
    orders = [order for order in view.orders if order.action == "inspect" and _is_source(view, order.host)]
    return next(filter(None, (_ok_answer(order) for order in reversed(orders))), None)


def _ok_answer(order: OrderRow) -> Answer | None:
    answer = answer_of(order) if order.state == "answered" else None
    return answer if answer is not None and answer.outcome == "ok" else None


def _is_source(view: View, host: str) -> bool:
    return host.lower() == view.status.host.lower()


def _other_host(view: View, body: InstanceMove) -> str:
    """Return the target if the last order was to the source, otherwise the source."""
    return target_of(body) if _is_source(view, view.orders[-1].host) else view.status.host


def _is_on_source(view: View) -> bool:
    """Return whether the source has reported a complete guest."""
    report = _source_report(view)
    return report is not None and _has_whole(report)


def _is_spared(view: View, guest: GuestReport | None) -> bool:
    """Return whether the guest arrived on the target before the order to discard."""
    return guest is not None and (guest.state, guest.operation) == ("running", uuid_text(view.operation.uuid))


def _has_nothing(report: Answer | None) -> bool:
    """Return whether a host has reported no complete guest."""
    return report is not None and not _has_whole(report)


def _has_whole(report: Answer) -> bool:
    return report.found is not None and report.found.state in _WHOLE


def _find_clear(view: View, body: InstanceMove) -> Reply:
    """Find the reply of the target; a failure after the last attempt is ``ABORTED``."""
    reply = find_reply(view, view.orders[-1])
    if reply is None:
        return wait_for_answer(view)
    if reply.answer is None or reply.event is Event.DONE:
        return reply
    if _may_discard_again(view):
        return retry_after_pause(view, body, reply)
    return Reply(event=Event.ABORTED, problem=reply.problem, answer=reply.answer)


def _find_undo(view: View, body: InstanceMove) -> Reply:
    """Find the reply of the target; until the source has reported a complete guest, the attempts are unlimited."""
    if _is_on_source(view):
        return _find_clear(view, body)
    return UNTIL_DONE.observe(view, body)


_REPLIES = UNTIL_DONE.events | Event.ABORTED
_JUDGED = ("undo", "look", "sweep", "end")
TABLE = Table(
    InstanceMove,
    {
        "choose": targets.CHOOSE,
        "send": State(AT_ONCE, {Event.STARTED: To(send, "prepare", "end")}),
        "prepare": State(
            WITHIN_LIMIT,
            {
                Event.DONE: To(migrate, "migrate", "clear"),
                Event.FAILED | Event.HOST_GONE: To(try_next_target, "prepare", "end"),
                Event.ABORTED: To(give_up, "end"),
                Event.TIMED_OUT: To(clear_target, "clear"),
            },
        ),
        "clear": State(
            Watch(_find_clear, _REPLIES),
            {
                Event.DONE | Event.ABORTED | Event.HOST_GONE: To(leave_target, "prepare", "end"),
                Event.FAILED: To(clear_again, "clear"),
            },
        ),
        "migrate": State(
            WITHIN_LIMIT,
            {
                Event.DONE: To(arrive, "end"),
                Event.FAILED | Event.ABORTED | Event.TIMED_OUT: To(inspect_source, "look"),
                Event.HOST_GONE: To(inspect_target, "look"),
            },
        ),
        "look": State(
            UNTIL_DONE,
            {
                Event.DONE: To(judge, *_JUDGED),
                Event.FAILED: To(inspect_again, "look"),
                Event.HOST_GONE: To(inspect_other, "look"),
            },
        ),
        "undo": State(
            Watch(_find_undo, _REPLIES),
            {
                Event.DONE: To(keep, "sweep", "end"),
                Event.ABORTED: To(keep, "end"),
                Event.FAILED: To(undo, "undo"),
                Event.HOST_GONE: To(keep_or_inspect, "undo", "look", "end"),
            },
        ),
        "sweep": State(
            UNTIL_DONE,
            {Event.DONE | Event.HOST_GONE: To(finish_sweep, "end"), Event.FAILED: To(sweep_again, "sweep")},
        ),
    },
    first=("choose",),
    cancel=To(hand_over, "end"),
    refusal=targets.REFUSAL,
)
