"""Servers whose instances leave their hosts, and agents that support moves, played by hand."""

from contextlib import contextmanager

import msgspec

from roost.conductor.intake import accept
from roost.conductor.moves.migration import leave_request
from roost.conductor.operation.liveness import require_gone_agent
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Destination, Request
from roost.model.work.guest import GuestReport, TransferTarget
from roost.model.work.orders import Answer
from roost.model.writes import CLASS_BITS
from roost.placement.write_plan import Plan
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import OK, PlayedAgent, action
from tests.support.conductors.conductors import server as opened
from tests.support.fleets.named_uuids import uuid_named

BROKEN = Answer(outcome="failed", problem="it is broken")


class Mover(PlayedAgent):
    """An agent that supports moves and knows the other agents.

    ``guests`` maps each guest to its state: running, stopped or prepared.
    """

    def __init__(self, server, host, others, **options):
        super().__init__(server, host, **options)
        self.others = others
        self.marks = {}  # by guest: the operation that brought it
        self.done = []  # the actions in order
        others[host] = self

    def work(self, script=None):
        """Carry out the current orders; return their number.

        Args:
            script: answers by host and action; the agent sends them to its next orders, without work.
        """
        orders = self.poll().orders
        for order in orders:
            answers = (script or {}).get((self.host, action(order)))
            given = answers.pop(0) if answers else self.result(order)
            self.done.append(action(order))
            self.answer(order, given)
        return len(orders)

    def result(self, order):
        """Carry out an order; return the answer."""
        uuid, kind = order.instance, action(order)
        if kind == "prepare":
            self.guests.setdefault(uuid, "prepared")
            self.marks.setdefault(uuid, order.operation)
            prepared = TransferTarget(uuid=uuid, node=order.act.guest.node, address=self.host)
            return Answer(outcome="ok", prepared=prepared)
        if kind == "live_migrate":
            return self.let_go(uuid, order.act.to.address)
        if kind == "discard":
            is_spared = order.act.is_sparing and self.guests.get(uuid) == "running"
            if self.marks.get(uuid) == (order.act.of or order.operation) and not is_spared:
                self.guests.pop(uuid, None)
        elif kind == "spawn":
            self.guests[uuid], self.marks[uuid] = "running" if order.act.guest.is_on else "stopped", order.operation
        elif kind == "destroy":
            self.guests.pop(uuid, None)
        elif kind in {"power_on", "power_off"}:
            self.guests[uuid] = "running" if kind == "power_on" else "stopped"
        return msgspec.structs.replace(OK, found=self.found(uuid))

    def let_go(self, uuid, address):
        """Move a guest to another host if it is here and prepared there."""
        target = self.others[address]
        if uuid not in self.guests:
            return OK if target.guests.get(uuid) == "running" else BROKEN
        if target.guests.get(uuid) != "prepared":
            return BROKEN
        target.guests[uuid] = self.guests.pop(uuid)
        return OK

    def found(self, uuid):
        """Return the report of a guest, or None."""
        if uuid not in self.guests:
            return None
        return GuestReport(uuid=uuid, node=self.host, operation=self.marks.get(uuid, uuid), state=self.guests[uuid])


def movers(server, names):
    """Return registered agents by host."""
    others = {}
    for name in names:
        Mover(server, name, others).register()
    return others


@contextmanager
def server_of_four_hosts():
    """Yield a server of four hosts, with their agents as ``hands`` and an instance on the first host."""
    with opened(None, ladder(4)) as made:
        made.hands = movers(made, [f"h{number}" for number in range(4)])
        made.build("one")
        run_agents_until_idle(made, made.hands)
        yield made


def run_agents_until_idle(server, hands, script=None, *, turns=60):
    """Run conductor and present agents until all are idle."""
    for _ in range(turns):
        done = server.turn()
        for hand in hands.values():
            if server.reader.agent(hand.host).state != "gone":
                done += hand.work(script)
        if not done:
            return
    raise AssertionError("conductor and agents never become idle")


def request_move(server, kind, name, *, host="", key=""):
    """Request a move of an instance from its host."""
    key = key or f"{kind} of {name} at {server.clock.now_s()}"

    def task(current):
        status = server.reader.status(uuid_bytes(uuid_named(name)))
        stored = msgspec.json.decode(current.store.document(status.request_id), type=Request)
        request = leave_request(stored, status)
        if host:
            request = msgspec.structs.replace(request, destination=Destination(host=host))
        move = msgspec.structs.replace(request.move, migration_uuid=uuid_named(f"migration {key}"))
        plan = accept.move(
            current,
            server.reader,
            uuid_named(name),
            kind=kind,
            request=msgspec.structs.replace(request, move=move),
            operation_uuid=uuid_bytes(uuid_named(key)),
            decision_uuid=uuid_named(f"decision {key}"),
            now_s=server.clock.now_s(),
        )
        if kind == "evacuate" and isinstance(plan, Plan):
            return require_gone_agent(plan, server.reader, status)
        return plan

    return server.run(task)


def migrations(server, name):
    """Return kind, status, source and target of each migration of an instance."""
    found = server.reader.migrations_of(uuid_bytes(uuid_named(name)))
    return [(each.kind, each.status, each.source_host, each.target_host) for each in found]


def nodes_by_consumer(server):
    """Return the nodes of each consumer's allocations, by the uuid of the instance or migration."""

    def task(current):
        state = current.state
        found = {}
        for holder in state.holders.values():
            rows = {state.providers.row_of_id[inventory_id >> CLASS_BITS] for inventory_id, _ in holder.takes}
            found[uuid_text(holder.uuid)] = sorted(state.providers.names[row] for row in rows)
        return found

    return server.run(task)


def advance_clock(server, hands, seconds):
    """Advance the clock, and send heartbeats of the present agents."""
    server.clock.time_s += seconds
    for hand in hands.values():
        if server.reader.agent(hand.host).state != "gone":
            hand.beat()
