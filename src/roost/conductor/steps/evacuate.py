"""An instance is built anew on another host, since its own is gone.

.. code-block:: text

    choose ─▶ send     with the decision, whatever it says: both are one commit
    send   ─▶ spawn    the target is to build it
           ─▶ end      there is none: it stays on its host
    spawn  ─▶ end      it is there; its migration keeps what its old host has until that is back and clean
           ─▶ spawn    the target could not: the next alternate is claimed in the commit that orders it there
           ─▶ clear    the target took too long, and is alive: first it has to get rid of what there may be of it
           ─▶ sweep    it is there, and its old host, which may not run it, is back
           ─▶ end      no target could: it stays on its host
    clear  ─▶ clear    the target could not get rid of it: it is asked again
           ─▶ spawn, end as above, when the target answered, or was given up
    sweep  ─▶ sweep    the old host could not get rid of it: it is asked again
           ─▶ end      it did, or was given up again
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from roost.conductor import targets
from roost.conductor.departures import gone_elsewhere, stayed
from roost.conductor.moves import moved_on
from roost.conductor.patience import PAUSE_S, silent
from roost.conductor.step import (
    Commit,
    Desk,
    Step,
    View,
    answer_of,
    is_open,
    ordered,
    plain,
    told,
    waiting,
    withdrawn,
)
from roost.model.journal import Write
from roost.model.operation import Move
from roost.model.work import Put


def next_step(view: View, desk: Desk) -> Step:
    """Return the next step."""
    return targets.next_step(view, desk, _STEPS)


def _send(view: View, desk: Desk, body: Move) -> Commit:
    found = targets.chosen(desk, body)
    if isinstance(found, str):
        return stayed(view, desk, body, problem=found)
    if view.is_away(_target(found)):
        return _onward(view, desk, found, problem=silent(_target(found)))
    return _spawn(view, desk, found)


def _spawn(view: View, desk: Desk, body: Move, *, writes: tuple[Write, ...] = ()) -> Commit:
    pick, limit_s = body.picks[0], view.terms.build_timeout_s
    after = msgspec.structs.replace(body, limit_at_s=view.now_s + limit_s)
    said = targets.wanted(view, after, limit_s=limit_s, is_on=_status(view) == "ACTIVE")
    return Commit(
        operation=waiting(view, after.limit_at_s, step="spawn", body=after),
        writes=writes,
        work=(
            *withdrawn(view.orders), Put(ordered(view, desk, pick.host, action="spawn", body=said)),
            moved_on(view, "moving", target_host=pick.host, target_node=pick.node),
            told(view, desk, "evacuate.sent", host=pick.host),
        ),
    )  # fmt: skip


def _spawned(view: View, desk: Desk, body: Move) -> Commit:
    order, target = view.orders[-1], _target(body)
    if is_open(order):
        if view.is_away(target):
            return _onward(view, desk, body, problem=silent(target))
        if view.now_s < body.limit_at_s:
            return Commit(operation=waiting(view, body.limit_at_s))
        lost = f"it was not built within {view.terms.build_timeout_s:,.0f} s"
        return _rid(view, desk, body, host=target, step="clear", lost=lost)
    answer = answer_of(order)
    if answer.outcome != "ok":
        problem = answer.problem or f"{target} said no more than {answer.outcome}"
        return _onward(view, desk, body, problem=problem, is_final=answer.outcome != "failed")
    agent = view.agent(view.status.host)
    if agent is not None and agent.state == "ready":
        return _rid(view, desk, body, host=view.status.host, step="sweep")
    # While its old host is away, or not clean yet, it cannot run there.
    return _arrived(view, desk, body, is_clean=False)


def _cleared(view: View, desk: Desk, body: Move) -> Commit:
    return _asked_again(view, desk, body) or _onward(view, desk, body, problem=body.lost)


def _swept(view: View, desk: Desk, body: Move) -> Commit:
    is_clean = not is_open(view.orders[-1])
    return _asked_again(view, desk, body) or _arrived(view, desk, body, is_clean=is_clean)


def _rid(view: View, desk: Desk, body: Move, *, host: str, step: str, lost: str = "") -> Commit:
    """Return the step that lets a host get rid of what it has."""
    limit_s = view.terms.act_timeout_s
    after = msgspec.structs.replace(body, lost=lost, limit_at_s=view.now_s + PAUSE_S)
    destroy = ordered(view, desk, host, action="destroy", body=plain(view, limit_s=limit_s))
    return Commit(
        operation=waiting(view, view.now_s + (0.0 if view.is_away(host) else limit_s), step=step, body=after),
        work=(*withdrawn(view.orders), Put(destroy)),
    )


def _asked_again(view: View, desk: Desk, body: Move) -> Commit | None:
    """Return the step that waits for a host, or asks it again to get rid of what it has; None: it did, or is away."""
    order = view.orders[-1]
    if is_open(order):
        return None if view.is_away(order.host) else Commit(operation=waiting(view, view.now_s + PAUSE_S))
    if answer_of(order).outcome == "ok":
        return None
    if view.now_s < body.limit_at_s:
        return Commit(operation=waiting(view, body.limit_at_s))
    return _rid(view, desk, body, host=order.host, step=view.operation.step, lost=body.lost)


def _onward(view: View, desk: Desk, body: Move, *, problem: str, is_final: bool = False) -> Commit:
    found = targets.onward(view, desk, body, problem=problem, is_final=is_final)
    if found.fault:
        step = stayed(view, desk, found.body, problem=found.fault)
    else:
        step = _spawn(view, desk, found.body, writes=found.writes)
    return replace(step, builds=((body.picks[0], True),))


def _arrived(view: View, desk: Desk, body: Move, *, is_clean: bool) -> Commit:
    step = gone_elsewhere(view, desk, body, status=_status(view), is_clean=is_clean)
    return replace(step, builds=((body.picks[0], False),))


def _status(view: View) -> str:
    """Return what the instance is to be: stopped if it was, else it runs."""
    return "SHUTOFF" if view.status.status == "SHUTOFF" else "ACTIVE"


def _target(body: Move) -> str:
    return body.picks[0].host


_STEPS: Mapping[str, Callable[[View, Desk, Move], Commit]] = {
    "send": _send, "spawn": _spawned, "clear": _cleared, "sweep": _swept
}  # fmt: skip
