"""Small bugs to plant into the product, to test that the simulation finds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest

from roost.compute.agent import saved_images
from roost.compute.agent.execute_order import OrderExecutor
from roost.conductor.agents import agent_protocol, foreign_guests
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
    """Replace the handler of an event in a step table."""
    monkeypatch.setattr(table.states[step].find(event), "handler", handler)


def missing_release(monkeypatch):
    """Keep the allocations of an instance that no host could build."""
    end_in_error = spawn._end_in_error
    monkeypatch.setattr(spawn, "_end_in_error", lambda *words, **more: replace(end_in_error(*words, **more), writes=()))


def missing_release_of_refused_build(monkeypatch):
    """Keep the allocations of instances whose hosts never had an agent."""
    end_in_error = spawn._end_in_error

    def keep(view, *words, **more):
        step = end_in_error(view, *words, **more)
        return replace(step, writes=()) if view.agent(view.status.host) is None else step

    monkeypatch.setattr(spawn, "_end_in_error", keep)


def double_build(monkeypatch):
    """Build an instance on another host while its first host may still build it."""
    monkeypatch.setattr(spawn, "withdraw_orders", lambda _orders: ())


def missing_undo(monkeypatch):
    """Keep the result of an order that was withdrawn."""
    monkeypatch.setattr(OrderExecutor, "_undo", lambda *_words, **_more: None)


def answer_to_a_withdrawn_order(monkeypatch):
    """Tell an agent that its result of a withdrawn order is wanted."""
    answer, poll = agent_protocol.answer, agent_protocol.poll

    def accept_withdrawn(reader, order_id, **more):
        return True if reader.order(order_id).state == "withdrawn" else answer(reader, order_id, **more)

    def hide_withdrawals(*words, **more):
        reply = poll(*words, **more)
        return msgspec.structs.replace(reply, withdrawn=()) if isinstance(reply, msgspec.Struct) else reply

    monkeypatch.setattr(agent_protocol, "answer", accept_withdrawn)
    monkeypatch.setattr(agent_protocol, "poll", hide_withdrawals)


def late_destroy(monkeypatch):
    """Release the allocations of a deleted instance before its host has destroyed the guest."""

    def send(view, desk, body):
        return delete.send(view, desk, msgspec.structs.replace(body, is_forced=True))

    replace_handler(monkeypatch, delete.TABLE, "send", Event.STARTED, send)


def unclean_return(monkeypatch):
    """Mark a host up although it still has guests that moved to other hosts."""
    monkeypatch.setattr(GuestFates, "is_clean", True)


def missing_return_of_use(monkeypatch):
    """Keep the use of a removed guest in the agent's count."""
    monkeypatch.setattr(OrderExecutor, "_release", lambda _self, _instance: None)


def concurrent_operations(monkeypatch):
    """Start an operation on an instance that is busy with another operation."""
    may_begin = accept.may_begin
    monkeypatch.setattr(
        accept, "may_begin", lambda kind, status: may_begin(kind, msgspec.structs.replace(status, operation_id=0))
    )


def repeated_answer(monkeypatch):
    """Apply a repeated answer to a later order of the same operation."""
    answer = agent_protocol.answer

    def answer_latest(reader, order_id, **more):
        order = reader.order(order_id)
        if order is not None and order.state == "answered":
            order_id = max(
                (each.id for each in reader.orders_of(order.operation_id) if is_open(each)), default=order_id
            )
        more["run"] = reader.agent(reader.order(order_id).host).run
        return answer(reader, order_id, **more)

    monkeypatch.setattr(agent_protocol, "answer", answer_latest)


def stale_run(monkeypatch):
    """Continue the cleanup of a host although its agent has a new run or is gone."""
    next_step = clean.TABLE.next_step

    def continue_cleanup(view, desk):
        body = body_of(view.operation, HostCleanup)
        agent = view.agent(body.host)
        if agent is None:
            return next_step(view, desk)
        same = msgspec.structs.replace(agent, fence=body.fence, state="arriving")
        step = next_step(replace(view, agents={**view.agents, body.host: same}), desk)
        return replace(step, work=tuple(with_fence(put, agent.fence) for put in step.work))

    def with_fence(put, fence):
        row = put.row
        return Put(msgspec.structs.replace(row, fence=fence), put.expected) if isinstance(row, AgentRow) else put

    monkeypatch.setattr(foreign_guests, "_end_early", lambda *_words, **_more: [])
    monkeypatch.setattr(clean.TABLE, "next_step", continue_cleanup)


def incomplete_cancel(monkeypatch):
    """Continue a build on its host after a deletion cancelled it."""
    cancel = spawn.TABLE.cancel.handler
    monkeypatch.setattr(
        spawn.TABLE.cancel,
        "handler",
        lambda view, desk, body: without_orders(cancel(view, desk, body)),
    )


def premature_image_removal(monkeypatch):
    """Treat an instance without a host as deleted when agents check saved images."""
    monkeypatch.setattr(
        saved_images,
        "find_deleted",
        lambda uuids, standings: [each for each in uuids if each in standings and not standings[each].host],
    )


def permanent_image(monkeypatch):
    """Never remove a saved image."""
    monkeypatch.setattr(saved_images, "find_deleted", lambda _uuids, _standings: [])


def unnoticed_loss(monkeypatch):
    """Never compare the instances of a host with its report."""
    monkeypatch.setattr(agent_protocol, "missing_instances", lambda *_words, **_more: [])


def unqueried_home(monkeypatch):
    """Destroy a guest from elsewhere although the database does not know it."""
    monkeypatch.setattr(foreign_guests, "find_strangers", lambda *_words, **_more: [])


def without_orders(step):
    """Return a step without its orders to agents."""
    return replace(step, work=tuple(put for put in step.work if not isinstance(put.row, OrderRow)))


_FEW = ("build", "delete", "start", "stop")

# Each plant with the kinds of operations that find it fast; an empty tuple stands for all kinds.
_PLANTS: Mapping[Plant, Sequence[str]] = {
    missing_release: _FEW,
    missing_release_of_refused_build: _FEW,
    double_build: _FEW,
    missing_undo: _FEW,
    answer_to_a_withdrawn_order: (),
    late_destroy: _FEW,
    unclean_return: _FEW,
    missing_return_of_use: _FEW,
    concurrent_operations: _FEW,
    repeated_answer: (),
    stale_run: (),
    incomplete_cancel: _FEW,
    premature_image_removal: (),
    permanent_image: (),
    unnoticed_loss: _FEW,
    unqueried_home: (),
    **PLANTS_OF_MOVES,
}
PLANTS: Mapping[str, Plant] = {plant.__name__: plant for plant in _PLANTS}
KINDS_OF: Mapping[str, Sequence[str]] = {plant.__name__: kinds for plant, kinds in _PLANTS.items()}
