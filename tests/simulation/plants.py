"""Bugs that are planted into the product, each as small as a slip of the pen, to see that the simulation finds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest

from roost.compute.agent import saved_images
from roost.compute.agent.execute_order import OrderExecutor
from roost.conductor.agents import agent_protocol
from roost.conductor.intake import accept
from roost.conductor.operation.events import Event
from roost.conductor.operation.reconcile import GuestFates
from roost.conductor.operation.step import body_of, is_open
from roost.conductor.steps import clean, delete, spawn
from roost.model.work.operation import HostCleanup
from roost.model.work.work_rows import AgentRow, OrderRow, Put
from tests.simulation.plants_of_moves import PLANTS_OF_MOVES

Plant = Callable[[pytest.MonkeyPatch], None]


def replace_handler(monkeypatch, table, step, event, handler):
    """Replace what a table does at an event."""
    monkeypatch.setattr(table.states[step].find(event), "handler", handler)


def skipped_release(monkeypatch):
    """Let an instance that no host could build keep what it holds."""
    buried = spawn._bury
    monkeypatch.setattr(spawn, "_bury", lambda *words, **more: replace(buried(*words, **more), writes=()))


def skipped_release_of_refused(monkeypatch):
    """Let instances whose hosts never had an agent keep what they hold."""
    buried = spawn._bury

    def kept(view, *words, **more):
        step = buried(view, *words, **more)
        return replace(step, writes=()) if view.agent(view.status.host) is None else step

    monkeypatch.setattr(spawn, "_bury", kept)


def doubled_build(monkeypatch):
    """Let an instance be built elsewhere while its first host may still build it."""
    monkeypatch.setattr(spawn, "withdraw_orders", lambda _orders: ())


def lost_undo(monkeypatch):
    """Let stay what an agent did, and nobody wants any more."""
    monkeypatch.setattr(OrderExecutor, "_undo", lambda *_words, **_more: None)


def answer_to_a_withdrawn_order(monkeypatch):
    """Let an agent believe that what it did for an order that was withdrawn is wanted."""
    answer, poll = agent_protocol.answer, agent_protocol.poll

    def believed(reader, order_id, **more):
        return True if reader.order(order_id).state == "withdrawn" else answer(reader, order_id, **more)

    def told(*words, **more):
        found = poll(*words, **more)
        return msgspec.structs.replace(found, withdrawn=()) if isinstance(found, msgspec.Struct) else found

    monkeypatch.setattr(agent_protocol, "answer", believed)
    monkeypatch.setattr(agent_protocol, "poll", told)


def destroyed_too_late(monkeypatch):
    """Let an instance give back what it holds before its host got rid of it."""

    def send(view, desk, body):
        return delete.send(view, desk, msgspec.structs.replace(body, is_forced=True))

    replace_handler(monkeypatch, delete.TABLE, "send", Event.STARTED, send)


def unclean_return(monkeypatch):
    """Let a host count as up with guests that are elsewhere by now."""
    monkeypatch.setattr(GuestFates, "is_clean", True)


def lost_return(monkeypatch):
    """Let an agent go on to count what a guest had that is gone."""
    monkeypatch.setattr(OrderExecutor, "_give_back", lambda _self, _instance: None)


def two_at_once(monkeypatch):
    """Let an operation begin on an instance that another one has."""
    may_begin = accept.may_begin
    monkeypatch.setattr(
        accept, "may_begin", lambda kind, status: may_begin(kind, msgspec.structs.replace(status, operation_id=0))
    )


def answer_counted_twice(monkeypatch):
    """Let an answer that comes twice count for what the operation has ordered since."""
    answer = agent_protocol.answer

    def counted(reader, order_id, **more):
        order = reader.order(order_id)
        if order is not None and order.state == "answered":
            order_id = max(
                (each.id for each in reader.orders_of(order.operation_id) if is_open(each)), default=order_id
            )
        more["run"] = reader.agent(reader.order(order_id).host).run
        return answer(reader, order_id, **more)

    monkeypatch.setattr(agent_protocol, "answer", counted)


def stale_run_accepted(monkeypatch):
    """Let whoever began to clean a host go on whatever became of its agent since, and of its run."""
    next_step = clean.TABLE.next_step

    def stepped(view, desk):
        body = body_of(view.operation, HostCleanup)
        agent = view.agent(body.host)
        if agent is None:
            return next_step(view, desk)
        same = msgspec.structs.replace(agent, fence=body.fence, state="arriving")
        step = next_step(replace(view, agents={**view.agents, body.host: same}), desk)
        return replace(step, work=tuple(fenced(put, agent.fence) for put in step.work))

    def fenced(put, fence):
        row = put.row
        return Put(msgspec.structs.replace(row, fence=fence), put.expected) if isinstance(row, AgentRow) else put

    monkeypatch.setattr(agent_protocol, "_end_early", lambda *_words, **_more: [])
    monkeypatch.setattr(clean.TABLE, "next_step", stepped)


def unfinished_cancel(monkeypatch):
    """Let a build that a deletion has ended go on at its host."""
    cancel = spawn.TABLE.cancel.handler
    monkeypatch.setattr(
        spawn.TABLE.cancel,
        "handler",
        lambda view, desk, body: without_orders(cancel(view, desk, body)),
    )


def image_of_the_living(monkeypatch):
    """Let an instance that is on no host count as deleted, where agents look at images."""
    monkeypatch.setattr(
        saved_images,
        "find_deleted",
        lambda uuids, standings: [each for each in uuids if each in standings and not standings[each].host],
    )


def image_for_ever(monkeypatch):
    """Let nobody drop an image."""
    monkeypatch.setattr(saved_images, "find_deleted", lambda _uuids, _standings: [])


def without_orders(step):
    """Return a step that says nothing to agents."""
    return replace(step, work=tuple(put for put in step.work if not isinstance(put.row, OrderRow)))


_FEW = ("build", "delete", "start", "stop")

# Each with the operations that are asked for, so that it is found soon; none: all of them.
_PLANTS: Mapping[Plant, Sequence[str]] = {
    skipped_release: _FEW,
    skipped_release_of_refused: _FEW,
    doubled_build: _FEW,
    lost_undo: _FEW,
    answer_to_a_withdrawn_order: (),
    destroyed_too_late: _FEW,
    unclean_return: _FEW,
    lost_return: _FEW,
    two_at_once: _FEW,
    answer_counted_twice: (),
    stale_run_accepted: (),
    unfinished_cancel: _FEW,
    image_of_the_living: (),
    image_for_ever: (),
    **PLANTS_OF_MOVES,
}
PLANTS: Mapping[str, Plant] = {plant.__name__: plant for plant in _PLANTS}
KINDS_OF: Mapping[str, Sequence[str]] = {plant.__name__: kinds for plant, kinds in _PLANTS.items()}
