"""Evacuate an instance: rebuild it on another host, because its own is gone.

Its migration keeps the allocations on the old host until that host is back and clean.
"""

from dataclasses import replace
from functools import partial

import msgspec

from roost.conductor.moves import targets, try_targets
from roost.conductor.moves.endings import finish_move, hand_over
from roost.conductor.moves.host_orders import send_until_done
from roost.conductor.moves.try_targets import guest_order, target_of
from roost.conductor.operation.events import Event
from roost.conductor.operation.step import Commit, Desk, View
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import AT_ONCE, UNTIL_DONE, WITHIN_LIMIT
from roost.model.work.operation import InstanceMove
from roost.model.writes import Write


def send(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to build the instance; without a target, keep it on its host."""
    # A skipped target got no order, so no failed build is counted there.
    return try_targets.try_first_target(view, desk, body, leave=_skip_target, send=_order_build, needs_source=False)


def arrive(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Put the instance on the target; if its old host is back, destroy the remains there first."""
    agent = view.agent(view.status.host)
    if agent is not None and agent.state == "ready":
        return _order_destroy(view, desk, body, host=view.status.host, step="sweep")
    return _finish(view, desk, body, is_clean=False)


def try_next_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Claim the next alternate and order the build there, in one commit; with none left, keep the instance."""
    return _try_next(view, desk, body, problem=view.reply.problem)


def give_up(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Keep the instance on its host: no other target can succeed."""
    return _try_next(view, desk, body, problem=view.reply.problem, is_final=True)


def clear_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the target to destroy the guest, if it was built."""
    lost = f"it was not built within {view.terms.build_timeout_s:,.0f} s"
    after = msgspec.structs.replace(body, lost=lost)
    return _order_destroy(view, desk, after, host=target_of(body), step="clear")


def leave_target(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Continue as after a failed build."""
    return _try_next(view, desk, body, problem=body.lost)


def finish(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Put the instance on the target, and release its old allocations unless its old host is gone again."""
    return _finish(view, desk, body, is_clean=view.reply.event is Event.DONE)


def destroy_again(view: View, desk: Desk, body: InstanceMove) -> Commit:
    """Order the host again to destroy the guest."""
    return _order_destroy(view, desk, body, host=view.orders[-1].host, step=view.operation.step)


def _order_build(view: View, desk: Desk, body: InstanceMove, *, writes: tuple[Write, ...] = ()) -> Commit:
    order = guest_order(view, body, limit_s=view.terms.build_timeout_s, is_on=_status(view) == "ACTIVE")
    return try_targets.order_target(view, desk, body, action="spawn", order=order, writes=writes)


def _order_destroy(view: View, desk: Desk, body: InstanceMove, *, host: str, step: str) -> Commit:
    return send_until_done(view, desk, body, host=host, actions=("destroy",), step=step)


def _try_next(view: View, desk: Desk, body: InstanceMove, *, problem: str, is_final: bool = False) -> Commit:
    step = _skip_target(view, desk, body, problem=problem, is_final=is_final)
    return replace(step, builds=((body.picks[0], True),))


def _finish(view: View, desk: Desk, body: InstanceMove, *, is_clean: bool) -> Commit:
    step = finish_move(view, desk, body, status=_status(view), is_clean=is_clean)
    return replace(step, builds=((body.picks[0], False),))


def _status(view: View) -> str:
    """Return the status after the evacuation: a stopped instance stays stopped, any other runs."""
    return "SHUTOFF" if view.status.status == "SHUTOFF" else "ACTIVE"


_skip_target = partial(try_targets.try_next_target, send=_order_build)
TABLE = Table(
    InstanceMove,
    {
        "choose": targets.CHOOSE,
        "send": State(AT_ONCE, {Event.STARTED: To(send, "spawn", "end")}),
        "spawn": State(
            WITHIN_LIMIT,
            {
                Event.DONE: To(arrive, "end", "sweep"),
                Event.FAILED | Event.HOST_GONE: To(try_next_target, "spawn", "end"),
                Event.ABORTED: To(give_up, "end"),
                Event.TIMED_OUT: To(clear_target, "clear"),
            },
        ),
        "clear": State(
            UNTIL_DONE,
            {
                Event.DONE | Event.HOST_GONE: To(leave_target, "spawn", "end"),
                Event.FAILED: To(destroy_again, "clear"),
            },
        ),
        "sweep": State(
            UNTIL_DONE,
            {Event.DONE | Event.HOST_GONE: To(finish, "end"), Event.FAILED: To(destroy_again, "sweep")},
        ),
    },
    first=("choose",),
    cancel=To(hand_over, "end"),
    refusal=targets.REFUSAL,
)
