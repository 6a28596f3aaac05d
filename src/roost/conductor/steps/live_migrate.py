"""An instance goes to another host while it runs.

.. code-block:: text

    choose  ─▶ send      with the decision, whatever it says: both are one commit
    send    ─▶ prepare   the target is to keep room for it
            ─▶ end       there is none, or nobody is at the source: it stays
    prepare ─▶ migrate   room is kept: the source is to let it go there
            ─▶ prepare   the target could not: the next alternate is claimed in the commit that orders it there
            ─▶ clear     the target took too long, and is alive: first it has to undo what there may be
            ─▶ end       no target could: it stays
    clear   ─▶ prepare, end as above, when the target answered, or was given up
    migrate ─▶ end       it runs on the target, and its migration gives back what it had
            ─▶ look      it failed, took too long, or the source was given up: where it is, is asked and never guessed
    look    ─▶ look      a host could not tell, or was given up: the other one is asked, or the same again
            ─▶ undo      it is not on the target, which spares it if it comes to run there before
            ─▶ sweep     it runs on the target, and the source is back meanwhile
            ─▶ end       it runs on the target; of a source that is away its migration keeps what it had
    undo    ─▶ end       the target has nothing of it: it stays; or spared it
            ─▶ look      the target was given up before anybody could tell
            ─▶ sweep     the target spared it, and the source is back meanwhile
    sweep   ─▶ end       the source got rid of what it had, or was given up again
"""

from collections.abc import Callable, Mapping

import msgspec

from roost.conductor.moves import targets, try_targets
from roost.conductor.moves.ask_host import send_order, send_until_done
from roost.conductor.moves.endings import finish_move, keep_on_source
from roost.conductor.moves.try_targets import target_of
from roost.conductor.moves.wait_for_host import PAUSE_S, awaited, paused, problem_of, silence_problem, unfinished
from roost.conductor.operation.step import Commit, Desk, Step, View, answer_of, is_open, simple_order, wait_until
from roost.model.names import uuid_text
from roost.model.work.guest import Found
from roost.model.work.operation import Moving
from roost.model.work.orders import Action, Answer, OrderBody
from roost.model.work.work_rows import OrderRow

# So often at most a target is asked to undo something that cannot run there.
_TRIES = 3
_WHOLE = frozenset({"running", "stopped"})


def next_step(view: View, desk: Desk) -> Step:
    """Return the next step."""
    return targets.next_step(view, desk, _STEPS)


# --- before anything moves ---


def _send(view: View, desk: Desk, body: Moving) -> Commit:
    return try_targets.ask_first_target(view, desk, body, onward=try_targets.ask_next_target)


def _prepared(view: View, desk: Desk, body: Moving) -> Commit:
    source, limit_s = view.status.host, view.terms.build_timeout_s
    late = f"{target_of(body)} kept no room within {view.terms.act_timeout_s:,.0f} s"
    after = try_targets.prepared(view, desk, body, onward=try_targets.ask_next_target, clear=_clear, late=late)
    if isinstance(after, Commit):
        return after
    if view.is_away(source):
        return _clear(view, desk, body, lost=silence_problem(source))
    said = OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s, to=after.prepared)
    return send_order(view, desk, after, host=source, action="live_migrate", said=said, step="migrate")


def _clear(view: View, desk: Desk, body: Moving, *, lost: str) -> Commit:
    return _ordered(view, desk, body, host=target_of(body), actions=("discard",), step="clear", lost=lost)


def _cleared(view: View, desk: Desk, body: Moving) -> Commit:
    """Return what follows when the target undid what there was: nothing was on its way, so nothing can run there."""
    if _may_ask_again(view):
        return paused(view, limit_at_s=body.limit_at_s) or _clear(view, desk, body, lost=body.lost)
    is_final = view.is_away(view.status.host)
    return awaited(view) or try_targets.ask_next_target(view, desk, body, problem=body.lost, is_final=is_final)


# --- on its way ---


def _migrated(view: View, desk: Desk, body: Moving) -> Commit:
    order, source = view.orders[-1], view.status.host
    if not is_open(order):
        answer = answer_of(order)
        if answer.outcome == "ok":
            return finish_move(view, desk, body, status="ACTIVE", is_clean=True)
        return _look(view, desk, body, host=source, lost=problem_of(answer, host=source))
    if view.is_away(source):
        return _look(view, desk, body, host=target_of(body), lost=silence_problem(source))
    if view.now_s < body.limit_at_s:
        return Commit(operation=wait_until(view, body.limit_at_s))
    lost = f"it did not move within {view.terms.build_timeout_s:,.0f} s"
    return _look(view, desk, body, host=source, lost=lost)


# --- where it is ---


def _look(view: View, desk: Desk, body: Moving, *, host: str, lost: str = "") -> Commit:
    """Ask a host what it has of the instance.

    The source is asked behind the move, which is aborted: when it answers, nothing moves any more.
    """
    is_source = _is_source(view, host)
    actions: tuple[Action, ...] = ("abort_migration", "inspect") if is_source else ("inspect",)
    return _ordered(view, desk, body, host=host, actions=actions, step="look", lost=lost or body.lost)


def _looked(view: View, desk: Desk, body: Moving) -> Commit:
    order, source = view.orders[-1], view.status.host
    other = target_of(body) if _is_source(view, order.host) else source
    if is_open(order):
        if not view.is_away(order.host):
            return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s))
        if view.is_away(other) or _has_nothing(_seen_at_source(view)):
            return Commit(operation=wait_until(view, view.now_s + PAUSE_S))
        return _look(view, desk, body, host=other)
    answer = answer_of(order)
    if answer.outcome != "ok":
        return paused(view, limit_at_s=body.limit_at_s) or _look(view, desk, body, host=order.host)
    if _is_source(view, order.host):
        return _undo(view, desk, body) if _is_whole(answer) else _look(view, desk, body, host=other)
    return _seen_at_target(view, desk, body, found=answer.found)


def _seen_at_target(view: View, desk: Desk, body: Moving, *, found: Found | None) -> Commit:
    source, is_known = view.status.host, _has_nothing(_seen_at_source(view))
    is_here = found is not None and (found.state == "running" or (found.state in _WHOLE and is_known))
    if is_here and found is not None:
        status = "ACTIVE" if found.state == "running" else "SHUTOFF"
        if is_known or view.is_away(source):
            return finish_move(view, desk, body, status=status, is_clean=is_known)
        return _ordered(view, desk, body, host=source, actions=("destroy",), step="sweep", lost=body.lost)
    if is_known or view.is_away(source):
        return _undo(view, desk, body)
    return _look(view, desk, body, host=source)


def _undo(view: View, desk: Desk, body: Moving) -> Commit:
    """Let the target undo what it prepared; where nobody knows that the source has it, it may still arrive."""
    is_sparing = not _is_at_source(view)
    said = msgspec.structs.replace(simple_order(view, limit_s=view.terms.act_timeout_s), is_sparing=is_sparing)
    return send_until_done(view, desk, body, host=target_of(body), actions=("discard",), step="undo", said=said)


def _undone(view: View, desk: Desk, body: Moving) -> Commit:
    order, source, seen = view.orders[-1], view.status.host, _seen_at_source(view)
    is_there = _is_at_source(view)
    if is_open(order):
        if not view.is_away(order.host):
            return Commit(operation=wait_until(view, view.now_s + view.terms.act_timeout_s))
        if not is_there:  # It may have arrived at the last moment.
            if view.is_away(source) or _has_nothing(seen):
                return Commit(operation=wait_until(view, view.now_s + PAUSE_S))
            return _look(view, desk, body, host=source)
    elif answer_of(order).outcome != "ok" and (not is_there or _may_ask_again(view)):
        return paused(view, limit_at_s=body.limit_at_s) or _undo(view, desk, body)
    elif not is_there and _is_spared(view, found := answer_of(order).found):
        return _seen_at_target(view, desk, body, found=found)
    if is_there or seen is None:
        is_stopped = seen is not None and seen.found is not None and seen.found.state == "stopped"
        return keep_on_source(view, desk, body, problem=body.lost, status="SHUTOFF" if is_stopped else "")
    problem = f"{body.lost}; and neither {source} nor {target_of(body)} has it"
    return keep_on_source(view, desk, body, problem=problem, status="ERROR")


def _swept(view: View, desk: Desk, body: Moving) -> Commit:
    def again() -> Commit:
        host = view.orders[-1].host
        return _ordered(view, desk, body, host=host, actions=("destroy",), step="sweep", lost=body.lost)

    is_clean = not is_open(view.orders[-1])
    return unfinished(view, limit_at_s=body.limit_at_s, again=again) or finish_move(
        view, desk, body, status="ACTIVE", is_clean=is_clean
    )


# --- what these share ---


def _ordered(
    view: View, desk: Desk, body: Moving, *, host: str, actions: tuple[Action, ...], step: str, lost: str
) -> Commit:
    """Return the step that orders something of a host, since a move went wrong."""
    after = msgspec.structs.replace(body, lost=lost)
    return send_until_done(view, desk, after, host=host, actions=actions, step=step)


def _may_ask_again(view: View) -> bool:
    """Say whether the target is asked again to undo what it could not: what is left there is no guest that can run."""
    order = view.orders[-1]
    is_bad = not is_open(order) and answer_of(order).outcome != "ok"
    tries = [each for each in view.orders if (each.action, each.host) == ("discard", order.host)]
    return is_bad and len(tries) < _TRIES and not view.is_away(order.host)


def _seen_at_source(view: View) -> Answer | None:
    """Return what the source said last of what it has; None: it did not."""
    found = [order for order in view.orders if order.action == "inspect" and _is_source(view, order.host)]
    return next(filter(None, (_said(order) for order in reversed(found))), None)


def _said(order: OrderRow) -> Answer | None:
    answer = answer_of(order) if order.state == "answered" else None
    return answer if answer is not None and answer.outcome == "ok" else None


def _is_source(view: View, host: str) -> bool:
    return host.lower() == view.status.host.lower()


def _is_at_source(view: View) -> bool:
    """Say whether the source is known to have the whole instance."""
    seen = _seen_at_source(view)
    return seen is not None and _is_whole(seen)


def _is_spared(view: View, found: Found | None) -> bool:
    """Say whether an instance came to run on the target before that undid what it had prepared."""
    return found is not None and (found.state, found.operation) == ("running", uuid_text(view.operation.uuid))


def _has_nothing(seen: Answer | None) -> bool:
    """Say whether the source is known to have nothing of the instance."""
    return seen is not None and not _is_whole(seen)


def _is_whole(answer: Answer) -> bool:
    return answer.found is not None and answer.found.state in _WHOLE


_STEPS: Mapping[str, Callable[[View, Desk, Moving], Commit]] = {
    "send": _send,
    "prepare": _prepared,
    "clear": _cleared,
    "migrate": _migrated,
    "look": _looked,
    "undo": _undone,
    "sweep": _swept,
}
