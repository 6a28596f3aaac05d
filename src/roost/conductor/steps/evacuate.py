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
from functools import partial

import msgspec

from roost.conductor.moves import targets, try_targets
from roost.conductor.moves.ask_host import send_until_done
from roost.conductor.moves.endings import finish_move
from roost.conductor.moves.try_targets import guest_order, target_of
from roost.conductor.moves.wait_for_host import unfinished
from roost.conductor.operation.step import Commit, Desk, Step, View, is_open
from roost.model.work.operation import Moving
from roost.model.writes import Write


def next_step(view: View, desk: Desk) -> Step:
    """Return the next step."""
    return targets.next_step(view, desk, _STEPS)


def _send(view: View, desk: Desk, body: Moving) -> Commit:
    # Nothing was built yet where it cannot be sent to, so nothing failed there.
    return try_targets.ask_first_target(view, desk, body, onward=_PAST, ask=_spawn, is_source_asked=False)


def _spawn(view: View, desk: Desk, body: Moving, *, writes: tuple[Write, ...] = ()) -> Commit:
    said = guest_order(view, body, limit_s=view.terms.build_timeout_s, is_on=_status(view) == "ACTIVE")
    return try_targets.order_target(view, desk, body, action="spawn", said=said, writes=writes)


def _spawned(view: View, desk: Desk, body: Moving) -> Commit:
    late = f"it was not built within {view.terms.build_timeout_s:,.0f} s"
    answer = try_targets.answered(view, desk, body, onward=_onward, clear=_clear, late=late)
    if isinstance(answer, Commit):
        return answer
    agent = view.agent(view.status.host)
    if agent is not None and agent.state == "ready":
        return _rid(view, desk, msgspec.structs.replace(body, lost=""), host=view.status.host, step="sweep")
    # While its old host is away, or not clean yet, it cannot run there.
    return _arrived(view, desk, body, is_clean=False)


def _clear(view: View, desk: Desk, body: Moving, *, lost: str) -> Commit:
    return _rid(view, desk, msgspec.structs.replace(body, lost=lost), host=target_of(body), step="clear")


def _cleared(view: View, desk: Desk, body: Moving) -> Commit:
    return _asked_again(view, desk, body) or _onward(view, desk, body, problem=body.lost)


def _swept(view: View, desk: Desk, body: Moving) -> Commit:
    is_clean = not is_open(view.orders[-1])
    return _asked_again(view, desk, body) or _arrived(view, desk, body, is_clean=is_clean)


def _rid(view: View, desk: Desk, body: Moving, *, host: str, step: str) -> Commit:
    """Return the step that lets a host get rid of what it has."""
    return send_until_done(view, desk, body, host=host, actions=("destroy",), step=step)


def _asked_again(view: View, desk: Desk, body: Moving) -> Commit | None:
    """Return the step that waits for a host, or asks it again to get rid of what it has; None: it did, or is away."""
    host, step = view.orders[-1].host, view.operation.step
    return unfinished(view, limit_at_s=body.limit_at_s, again=lambda: _rid(view, desk, body, host=host, step=step))


def _onward(view: View, desk: Desk, body: Moving, *, problem: str, is_final: bool = False) -> Commit:
    step = _PAST(view, desk, body, problem=problem, is_final=is_final)
    return replace(step, builds=((body.picks[0], True),))


def _arrived(view: View, desk: Desk, body: Moving, *, is_clean: bool) -> Commit:
    step = finish_move(view, desk, body, status=_status(view), is_clean=is_clean)
    return replace(step, builds=((body.picks[0], False),))


def _status(view: View) -> str:
    """Return what the instance is to be: stopped if it was, else it runs."""
    return "SHUTOFF" if view.status.status == "SHUTOFF" else "ACTIVE"


_PAST = partial(try_targets.ask_next_target, ask=_spawn)
_STEPS: Mapping[str, Callable[[View, Desk, Moving], Commit]] = {
    "send": _send,
    "spawn": _spawned,
    "clear": _cleared,
    "sweep": _swept,
}
