"""Servers with cold migrations and resizes of instances, and agents played by hand."""

from dataclasses import dataclass

import msgspec

from roost.conductor.intake import accept
from roost.conductor.intake.accept_revert import revert
from roost.conductor.moves.migration import move_request
from roost.errors import NotFound
from roost.model.names import uuid_bytes
from roost.model.request import Destination, Request
from roost.model.work.guest import GuestReport, TransferTarget
from roost.model.work.operation import MoveSettlement
from roost.model.work.orders import Answer
from tests.support.conductors.conductors import OK, PlayedAgent, action
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import small_request


@dataclass
class Copy:
    """A host's copy of an instance."""

    state: str
    mark: str = ""
    vcpus: int = 1


class ResizeAgent(PlayedAgent):
    """An agent that starts a guest from an arrived disk, and keeps the replaced copy until the move is settled.

    ``guests`` maps each guest to its state: running, stopped or prepared.
    """

    def __init__(self, server, host, others, **options):
        super().__init__(server, host, **options)
        self.copies, self.coming, self.replaced, self.sent = {}, {}, {}, set()
        self.others = others
        self.done = []  # the actions in order
        self.most_running = others.setdefault("most running", {})
        others[host] = self

    def work(self, script=None):
        """Carry out the current orders; return their number.

        Args:
            script: answers to the next orders by host and action, which are sent instead of the work;
                None sends no answer.
        """
        orders = self.poll().orders
        for order in orders:
            if order.id in self.known:
                continue
            answers = (script or {}).get((self.host, action(order)))
            given = answers[0] if answers else self.result(order)
            self.done.append(action(order))
            if given is None:
                self.known.append(order.id)
            else:
                self.answer(order, given)
            if answers:
                del answers[0]  # Only after it was sent, so that a failed attempt is repeated.
            if given is None:
                continue
            self.known = [number for number in self.known if number != order.id]
        self.guests = {uuid: copy.state for uuid, copy in {**self.coming, **self.copies}.items()}
        for uuid, state in self.guests.items():
            if state == "running":
                hosts = {
                    name for name, each in self.others.items() if name != "most running" and runs_guest(each, uuid)
                }
                self.most_running[uuid] = max(self.most_running.get(uuid, 0), len(hosts))
        return len(orders)

    def result(self, order):
        """Carry out an order; return the answer."""
        uuid, kind, act = order.instance, action(order), order.act
        done = getattr(self, f"_{kind}", None)
        outcome = done(uuid, act, order.operation) if done is not None else None
        if isinstance(outcome, Answer):
            return outcome
        copy = self.copies.get(uuid) or self.coming.get(uuid)
        if copy is None:
            return OK
        return msgspec.structs.replace(
            OK, found=GuestReport(uuid=uuid, node=self.host, operation=copy.mark, state=copy.state)
        )

    def _spawn(self, uuid, act, mark):
        self.copies[uuid] = Copy("running", mark, act.guest.flavor.vcpus)

    def _destroy(self, uuid, act, mark):
        for books in (self.copies, self.coming, self.replaced):
            books.pop(uuid, None)

    def _power_on(self, uuid, act, mark):
        if uuid not in self.copies:
            return Answer(outcome="aborted", problem="there is no such guest")
        self.copies[uuid].state = "running"
        return None

    def _power_off(self, uuid, act, mark):
        self.copies[uuid].state = "stopped"

    def _prepare(self, uuid, act, mark):
        if self.copies.get(uuid, Copy("")).mark != mark:
            self.coming[uuid] = Copy("prepared", mark, act.guest.flavor.vcpus)
        return Answer(outcome="ok", prepared=TransferTarget(uuid=uuid, node=act.guest.node, address=self.host))

    def _send_disk(self, uuid, act, mark):
        assert self.copies[uuid].state == "stopped"
        self.others[act.to.address].sent.add(uuid)

    def _finish(self, uuid, act, mark):
        if self.copies.get(uuid, Copy("")).mark == mark:
            return None
        if uuid not in self.coming or uuid not in self.sent:
            return Answer(outcome="failed", problem="nothing has arrived")
        if uuid in self.copies:
            self.replaced[uuid] = self.copies[uuid]
        self.copies[uuid] = self.coming.pop(uuid)
        self.copies[uuid].state = "running" if act.guest.is_on else "stopped"
        self.sent.discard(uuid)
        return None

    def _discard(self, uuid, act, mark):
        mark = act.of or mark
        if self.coming.get(uuid, Copy("")).mark == mark:
            del self.coming[uuid]
        if self.copies.get(uuid, Copy("")).mark == mark:
            del self.copies[uuid]
            if uuid in self.replaced:
                self.copies[uuid] = self.replaced.pop(uuid)

    def _settle(self, uuid, act, mark):
        self.replaced.pop(uuid, None)


def runs_guest(keeper, uuid):
    """Return whether an agent runs a guest."""
    return uuid in keeper.copies and keeper.copies[uuid].state == "running"


def resize_agents(server, *names):
    """Return registered agents by host."""
    others = {}
    for name in names:
        ResizeAgent(server, name, others).register()
    return {name: each for name, each in others.items() if name != "most running"}


def request_resize(server, kind, name, *, vcpus=0, host="", is_verified=False, is_lost=False, key=""):
    """Request a move of an instance, or its confirmation or reversal."""
    key = key or f"{kind} of {name} at {server.clock.now_s()}"
    now_s, uuid = server.clock.now_s(), uuid_bytes(uuid_named(key))

    def task(current):
        if kind == "confirm":
            return accept.act(
                current,
                server.reader,
                uuid_named(name),
                kind=kind,
                body=MoveSettlement(),
                operation_uuid=uuid,
                now_s=now_s,
            )
        if kind == "revert":
            return revert(current, server.reader, uuid_named(name), operation_uuid=uuid, now_s=now_s, is_lost=is_lost)
        status = server.reader.status(uuid_bytes(uuid_named(name)))
        if status is None:
            raise NotFound("instance", name)
        stored = msgspec.json.decode(current.store.document(status.request_id), type=Request)
        request = move_request(stored, status, may_stay=kind == "resize")
        if vcpus:
            request = msgspec.structs.replace(request, flavor=small_request(vcpus=vcpus).flavor)
        if host:
            request = msgspec.structs.replace(request, destination=Destination(host=host))
        move = msgspec.structs.replace(request.move, migration_uuid=uuid_named(f"migration {key}"))
        return accept.move(
            current,
            server.reader,
            uuid_named(name),
            kind=kind,
            request=msgspec.structs.replace(request, move=move),
            operation_uuid=uuid,
            decision_uuid=uuid_named(f"decision {key}"),
            now_s=now_s,
            is_verified=is_verified or kind == "resize",
        )

    return server.run(task)


def instance_summary(server, name):
    """Return status, host and fault of an instance."""
    row = server.status(name)
    return row.status, row.host, row.fault
