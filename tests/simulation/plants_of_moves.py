"""Bugs that are planted into moves and drains, each as small as a slip of the pen."""

from dataclasses import replace

import msgspec

from roost.compute.agent import queues
from roost.compute.agent.execute_order import OrderExecutor
from roost.conductor.agents import agent_protocol
from roost.conductor.moves import migration, try_targets
from roost.conductor.moves.endings import hand_over
from roost.conductor.moves.migration import migration_of, release_migration
from roost.conductor.moves.try_targets import target_of
from roost.conductor.operation import reconcile
from roost.conductor.operation.events import Event
from roost.conductor.operation.step import body_of
from roost.conductor.operation.step_table import To
from roost.conductor.operation.watches import AT_ONCE
from roost.conductor.steps import TABLES, clean, confirm, drain, live_migrate, move, revert, shelve, spawn
from roost.model.work.change_memory import Drain
from roost.model.work.orders import Discard


def settled_on_arrival(monkeypatch):
    """Let a move give back what was left as soon as its instance has arrived, whoever may want it back."""
    arrivals = [table.states["finish"].find(Event.DONE) for table in (move.TABLE, move.RESIZE_TABLE)]
    arrive = arrivals[0].handler

    def gone(view, desk, body):
        step = arrive(view, desk, body)
        if step.operation.step not in {"part", "end"}:
            return step
        return replace(step, writes=(*step.writes, *release_migration(desk.current, migration_of(view))))

    for arrival in arrivals:
        monkeypatch.setattr(arrival, "handler", gone)


def unclaimed_alternate(monkeypatch):
    """Let a move go on to another host without taking anything there."""
    failed = try_targets._find_next
    monkeypatch.setattr(try_targets, "_find_next", lambda *words, **more: failed(*words, **more)._replace(writes=()))


def claimed_beside(monkeypatch):
    """Let a build go on to another host without giving back the one that could not."""
    step_to = spawn.plan_alternate

    def beside(current, name, pick):
        found = step_to(current, name, pick)
        return (
            found
            if isinstance(found, str)
            else found._replace(release=msgspec.structs.replace(found.release, frees=[]))
        )

    monkeypatch.setattr(spawn, "plan_alternate", beside)


def forgotten_place(monkeypatch):
    """Let an instance that goes back have no place in its server group."""
    monkeypatch.setattr(migration, "places_of", lambda _state, _row: [])


def unfenced_return(monkeypatch):
    """Let a host go on to run what is being evacuated from it."""
    monkeypatch.setattr(reconcile, "is_held_by", lambda _move, _host: False)
    monkeypatch.setattr(agent_protocol, "is_held_by", lambda _move, _host: False)


def forgotten_move(monkeypatch):
    """Let what was left on a host stay held when that host is back, and has nothing of it."""
    monkeypatch.setattr(agent_protocol, "end_moves", lambda *_words, **_more: ((), ()))
    monkeypatch.setattr(clean, "end_moves", lambda *_words, **_more: ((), ()))


def drained_too_fast(monkeypatch):
    """Let a drain begin as many moves as it is allowed, whoever is on the way still."""
    next_step, own_subjects = drain.TABLE.next_step, drain.TABLE.subjects

    def wide(view, desk):
        body = body_of(view.operation, Drain)
        more = msgspec.structs.replace(body, at_once=body.at_once + len(body.going))
        step = next_step(replace(view, operation=_with(view.operation, more)), desk)
        after = msgspec.structs.replace(body_of(step.operation, Drain), at_once=body.at_once)
        return replace(step, operation=_with(step.operation, after))

    def subjects(operation):
        body = body_of(operation, Drain)
        more = msgspec.structs.replace(body, at_once=body.at_once + len(body.going))
        return own_subjects(_with(operation, more))

    monkeypatch.setattr(drain.TABLE, "next_step", wide)
    monkeypatch.setattr(drain.TABLE, "subjects", subjects)


def _with(operation, body):
    return msgspec.structs.replace(operation, body=msgspec.msgpack.encode(body))


def confirmed_unseen(monkeypatch):
    """Let what was left be given back before its host got rid of it."""
    for name in ("order_parting", "leave_source"):
        monkeypatch.setattr(confirm, name, confirm.finish)
    for event in (Event.STARTED, Event.HOST_GONE):
        monkeypatch.setattr(confirm.PART.find(event), "handler", confirm.finish)


def undone_unseen(monkeypatch):
    """Let the target of a move that was not answered undo what it has, whoever runs the instance by then."""
    inspect = live_migrate._inspect

    def undo(view, desk, body, *, host, lost=""):
        if view.operation.step != "migrate":
            return inspect(view, desk, body, host=host, lost=lost)
        target = target_of(body)
        return live_migrate._send(view, desk, body, host=target, actions=("discard",), step="undo", lost=lost)

    monkeypatch.setattr(live_migrate, "_inspect", undo)


def unspared(monkeypatch):
    """Let the target of a live migration undo what came to run there after it was asked."""
    monkeypatch.setattr(OrderExecutor, "_runs", lambda _self, _instance, _operation: False)


def reverted_unseen(monkeypatch):
    """Let an instance start on its old host before the other one has undone the move."""
    state = revert.TABLE.states["discard"]
    monkeypatch.setattr(state, "watch", AT_ONCE)
    monkeypatch.setattr(state, "events", {Event.STARTED: To(revert.restart, "restart", "end")})


def offloaded_unheard(monkeypatch):
    """Let an instance count as off its host when that could not destroy it."""
    to = shelve.TABLE.states["offload"].find(Event.FAILED)
    monkeypatch.setattr(to, "handler", shelve.finish_offload)


def kept_by_a_cancelled_move(monkeypatch):
    """Let a deletion that ends a move forget what that has kept."""

    def over(view, desk, body):
        step = hand_over(view, desk, body)
        return replace(step, work=(*step.work, migration.update_migration(view, "failed")))

    for table in (move.TABLE, move.RESIZE_TABLE, live_migrate.TABLE, TABLES["evacuate"]):
        monkeypatch.setattr(table.cancel, "handler", over)


def discarded_once(monkeypatch):
    """Let a host that could not discard what it prepared keep that."""
    may_be_left = queues.may_be_left
    monkeypatch.setattr(
        queues,
        "may_be_left",
        lambda order, answer: not isinstance(order.act, Discard) and may_be_left(order, answer),
    )


_RESIZED = ("build", "resize", "confirm", "revert")

# Each with the operations that are asked for, so that it is found soon; none: all of them.
PLANTS_OF_MOVES = {
    settled_on_arrival: _RESIZED,
    unclaimed_alternate: (),
    claimed_beside: (),
    forgotten_place: (),
    unfenced_return: ("build", "evacuate"),
    forgotten_move: ("build", "evacuate"),
    drained_too_fast: ("build", "drain"),
    confirmed_unseen: _RESIZED,
    undone_unseen: ("build", "live_migrate"),
    unspared: (),
    reverted_unseen: _RESIZED,
    offloaded_unheard: ("build", "shelve", "offload", "unshelve"),
    kept_by_a_cancelled_move: (),
    discarded_once: ("build", "resize"),
}
