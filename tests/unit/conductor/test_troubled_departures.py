"""Random failures while instances leave their hosts. In the end each is on one host, and nothing is leaked."""

from contextlib import suppress

import msgspec
import pytest

from roost.errors import Conflict, NotFound, Unavailable
from roost.model.names import uuid_text
from roost.model.work.guest import GuestReport, TransferTarget
from roost.model.work.orders import Answer
from tests.support.conductors.conductors import OK, action, failure
from tests.support.conductors.fault_worlds import ChangeWorld, Worker, check_allocations_match_guests, run_world
from tests.support.conductors.move_servers import request_move

EVENTS = 300
MOVES = frozenset({"prepare", "live_migrate", "discard", "inspect", "abort_migration"})


class MovingAgent(Worker):
    """An agent that carries out moves, or fails at random."""

    def __init__(self, world, name):
        super().__init__(world, name)
        self.marks = {}  # guest -> operation that brought it

    def result(self, order, fate):
        """Carry out an order, or fail; return the answer."""
        kind, uuid = action(order), order.instance
        if kind not in MOVES:
            answer = super().result(order, fate)
            if kind == "spawn" and answer is OK:
                self.marks[uuid] = order.operation
            return answer
        if order.turn < self.turns.get(uuid, 0):
            return Answer(outcome="stale", problem="a later operation was here")
        self.turns[uuid] = order.turn
        if fate < 0.55:
            return failure("it is broken")
        answer = self.carry_out(order, kind)
        return failure("it says so, and did it") if fate < 0.6 and kind == "live_migrate" else answer

    def carry_out(self, order, kind):
        """Carry out one order of a move."""
        uuid = order.instance
        if kind == "prepare":
            if uuid not in self.guests:
                self.guests[uuid], self.marks[uuid], self.made[uuid] = "prepared", order.operation, order.id
            return Answer(outcome="ok", prepared=TransferTarget(uuid=uuid, node=self.host, address=self.host))
        if kind == "live_migrate":
            target = next(hand for hand in self.world.hands if hand.host == order.act.to.address)
            if uuid not in self.guests:
                return OK if target.guests.get(uuid) == "running" else failure("it is not here")
            if target.guests.get(uuid) != "prepared":
                return failure("it is not awaited")
            target.guests[uuid] = self.guests.pop(uuid)
            return OK
        if kind == "discard" and self.marks.get(uuid) == order.operation:
            self.guests.pop(uuid, None)
        report = None
        if uuid in self.guests:
            mark = self.marks.get(uuid, uuid)
            report = GuestReport(uuid=uuid, node=self.host, operation=mark, state=self.guests[uuid])
        return msgspec.structs.replace(OK, found=report)


class Departures(ChangeWorld):
    """A world in which instances also leave their hosts."""

    def hand(self, name):
        """Return the agent of a host."""
        return MovingAgent(self, name)

    def event(self):
        """Let one random event happen, often a departure."""
        if self.chance.random() < 0.7:
            super().event()
            return
        with suppress(Unavailable, Conflict, NotFound):
            self.power()

    def power(self):
        """Request that an instance leaves its host, starts or stops."""
        if not self.names or self.chance.random() < 0.2:
            super().power()
            return
        name = self.chance.choice(self.names)
        server, kind = self.server(), self.chance.choice(["live_migrate", "evacuate", "evacuate"])
        if server.status(name) is not None:
            request_move(server, kind, name, key=f"{kind} {name} {self.chance.random()}")


def check_settled(world):
    """Check that each instance is on one host and no move is open; return kind and status of each move."""
    for hand in world.hands:
        # A place that was prepared for a guest that did not arrive is not a guest.
        hand.guests = {uuid: state for uuid, state in hand.guests.items() if state != "prepared"}
    check_allocations_match_guests(world)
    moves = world.servers[0].reader.migrations(limit=9999)
    assert {each.status for each in moves} <= {"confirmed", "failed"}, moves
    holders = world.servers[0].run(lambda current: {uuid_text(uuid) for uuid in current.state.holders})
    assert holders.isdisjoint(uuid_text(each.uuid) for each in moves)
    return [(each.kind, each.status) for each in moves]


@pytest.mark.parametrize("seed", range(20))
def test_departures_end_after_random_failures(seed, capfd):
    run_world(Departures(seed), check_settled, events=EVENTS)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.soak
def test_departures_end_after_random_failures_of_many_seeds():
    results = set()
    for seed in range(20, 1000):
        results |= set(run_world(Departures(seed), check_settled, events=EVENTS))
    assert {("live", "confirmed"), ("live", "failed"), ("evacuate", "confirmed"), ("evacuate", "failed")} <= results
