"""Moves under random failures from a seed: no guest runs twice, and in the end nothing is leaked."""

from contextlib import suppress

import pytest

from roost.model.names import uuid_text
from roost.model.work.orders import Answer, Discard
from tests.support.conductors.conductors import action, failure
from tests.support.conductors.fault_worlds import World, run_world
from tests.support.conductors.group_rules import check_group_policy
from tests.support.conductors.resize_servers import ResizeAgent, request_resize
from tests.support.fleets.worlds import group, host, merge_fleets

HOSTS, EVENTS = 4, 160
KINDS = ["migrate", "migrate", "resize", "resize", "confirm", "confirm", "revert", "revert"]


class UnreliableAgent(ResizeAgent):
    """An agent that carries out orders or fails at random, and remembers its answers."""

    def __init__(self, world, name, others):
        super().__init__(world.servers[0], name, others)
        self.world, self.is_there, self.is_calm = world, True, False
        self.turns, self.answers, self.unsent = {}, {}, {}

    def come(self, *, is_new):
        """Come back."""
        if is_new:
            self.live_again()
        self.guests = self.states
        self.register()
        self.is_there = True

    def work(self, script=None):
        """Poll for orders, and carry out some of them."""
        self.server = self.world.server()
        reply = self.poll()
        if reply.unknown:
            self.guests = self.states
            self.register()
            reply = self.poll()
        for order in {each.id: each for each in (*reply.orders, *self.unsent.values())}.values():
            fate = 1.0 if self.is_calm else self.world.chance.random()
            if fate < 0.15:
                continue  # The agent was too slow, or the reply to its poll was lost.
            if order.id not in self.answers:
                self.answers[order.id] = self.try_order(order, fate)
                self.unsent[order.id] = order
                self.check_running(order)
            if fate < 0.3:
                continue  # Its answer is lost.
            if self.answer(order, self.answers[order.id]) is False:
                self.undo(order)
            self.unsent.pop(order.id, None)

    def try_order(self, order, fate) -> Answer:
        """Carry out an order, or fail; return the answer."""
        if order.turn < self.turns.get(order.instance, 0):
            return Answer(outcome="stale", problem="a later operation was here")
        self.turns[order.instance] = order.turn
        if fate < 0.45 and action(order) != "destroy":
            return failure("it is broken") if fate < 0.4 else Answer(outcome="aborted", problem="it is very broken")
        with suppress(AssertionError, KeyError):
            return self.result(order)
        return Answer(outcome="aborted", problem="it is not here")

    def undo(self, order):
        """Undo a withdrawn order, unless a later order adopted its guest."""
        if self.turns.get(order.instance, 0) > order.turn:
            return
        if action(order) in {"prepare", "finish"}:
            self._discard(order.instance, Discard(), order.operation)
        elif action(order) == "spawn":
            self._destroy(order.instance, order.act, order.operation)

    def check_running(self, order):
        """Check that no guest runs twice, except copies on lost hosts that were replaced elsewhere."""
        ghosts = self.world.ghosts
        if action(order) in {"spawn", "power_on"}:
            for each in self.world.hands:
                is_lost = self.server.reader.agent(each.host).state != "ready"
                if each is not self and order.instance in each.copies and (is_lost or action(order) == "spawn"):
                    ghosts.append(each.copies[order.instance])
        for uuid in self.copies:
            copies = [each.copies[uuid] for each in self.world.hands if uuid in each.copies]
            running = [
                copy for copy in copies if copy.state == "running" and all(copy is not ghost for ghost in ghosts)
            ]
            assert len(running) <= 1, (uuid, [each.host for each in self.world.hands if uuid in each.copies])

    @property
    def states(self):
        """The state of each guest, by UUID."""
        return {uuid: copy.state for uuid, copy in {**self.coming, **self.copies}.items()}


class Moves(World):
    """A world in which instances move, and moves are confirmed and reverted."""

    PAUSES = (0.1, 1, 5, 31, 130, 620)
    TURNS = 150

    def __init__(self, seed):
        self.others, self.request_count = {}, 0
        self.ghosts = []  # copies on lost hosts, replaced elsewhere
        names = [f"h{number}" for number in range(HOSTS)]
        hosts = [host(name, VCPU=6, MEMORY_MB=100 - number) for number, name in enumerate(names)]
        super().__init__(seed, merge_fleets(*hosts, group("g", "anti-affinity")), names)

    def hand(self, name):
        """Return the agent of a host."""
        return UnreliableAgent(self, name, self.others)

    def acts(self):
        """Return the possible events, each as often as it is likely."""
        return [
            self.build,
            self.delete,
            *[self.move] * 4,
            *[self.turn] * 3,
            self.pass_time,
            self.agent_comes,
            self.agent_goes,
            *[self.agent_works] * 8,
        ]

    def build(self):
        """Request an instance, at times as a member of a group."""
        if len(self.names) < 5:
            self.names.append(f"i{len(self.names)}")
            more = {"in_group": "g"} if self.chance.random() < 0.5 else {}
            self.server().build(self.names[-1], key=self.names[-1], **more)

    def delete(self):
        """Request the deletion of an instance, rarely."""
        if self.names and self.chance.random() < 0.3:
            self.server().delete(self.chance.choice(self.names), key=f"end {self.chance.random()}")

    def move(self):
        """Request a move of an instance, or its confirmation or revert."""
        if self.names:
            self.request_count += 1
            kind = self.chance.choice(KINDS)
            request_resize(
                self.server(),
                kind,
                self.chance.choice(self.names),
                key=f"{kind} {self.request_count}",
                vcpus=self.chance.choice([1, 2]) if kind == "resize" else 0,
                is_verified=self.chance.random() < 0.5,
            )

    def agent_goes(self):
        """Let an agent leave, rarely."""
        if self.chance.random() < 0.5:
            super().agent_goes()


class LostHosts(Moves):
    """A world in which instances are reverted from lost hosts."""

    def __init__(self, seed):
        super().__init__(seed)
        for number in range(3):
            self.names.append(f"i{number}")
            self.server().build(f"i{number}", key=f"i{number}", **({"in_group": "g"} if number < 2 else {}))
        self.calm_down()
        for name in self.names:
            request_resize(self.server(), "migrate", name, key=f"first {name}", is_verified=True)
        self.calm_down()
        for hand in self.hands:
            hand.is_calm = False

    def acts(self):
        """Return the possible events, each as often as it is likely."""
        return [
            self.delete,
            *[self.revert] * 3,
            *[self.turn] * 4,
            self.pass_time,
            self.agent_comes,
            self.agent_goes,
            *[self.agent_works] * 6,
        ]

    def revert(self):
        """Let a host leave, and request the revert of an instance from there."""
        rows = [row for row in self.servers[0].reader.statuses(limit=9999) if row.status == "VERIFY_RESIZE"]
        row = self.chance.choice(rows or [None])
        hand = next((each for each in self.hands if row is not None and each.host == row.host), None)
        if hand is not None and hand.is_there:
            hand.is_there = False
            hand.leave()
        if row is not None:
            self.request_count += 1
            is_lost = self.chance.random() < 0.8
            request_resize(self.server(), "revert", row.name, key=f"lost {self.request_count}", is_lost=is_lost)


def check_world(world):
    """Check that every claim belongs to an instance, and every guest is on the host of its claim."""
    server = world.servers[0]
    server.run(lambda current: current.refresh())
    holders = server.run(lambda current: dict(current.state.holders))
    guests = {}
    for hand in world.hands:
        for uuid, state in hand.states.items():
            guests.setdefault(uuid, {})[hand.host] = state
    expected = set()
    for status in server.reader.statuses(limit=9999):
        uuid = uuid_text(status.uuid)
        assert (status.operation_id, status.task) == (0, ""), status
        copies = guests.get(uuid, {})
        if status.host:
            expected.add(status.uuid)
        if status.status in {"ACTIVE", "SHUTOFF"}:
            assert list(copies) == [status.host], (status, copies)
        elif status.status == "VERIFY_RESIZE":
            move = server.reader.migration(status.migration_uuid)
            assert move.status == "finished", move
            expected.add(move.uuid)
            assert {*copies} == {move.source_host, move.target_host}, (status, copies)
            assert move.source_host == move.target_host or copies[move.source_host] == "stopped", copies
        else:
            assert status.status in {"ERROR", "DELETED"}, status
            assert copies == {} or status.host in copies, (status, copies)
    assert set(holders) == expected
    check_group_policy(server, "anti-affinity", 1)


@pytest.mark.parametrize("seed", range(20))
def test_moves_end_after_random_failures(seed, capfd):
    run_world(Moves(seed), check_world, events=EVENTS, shares=(0.0, 0.05, 0.2))
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.soak
def test_moves_end_after_random_failures_of_many_seeds():
    for seed in range(20, 1000):
        run_world(Moves(seed), check_world, events=EVENTS, shares=(0.0, 0.05, 0.2))


@pytest.mark.parametrize("seed", range(20))
def test_reverts_from_lost_hosts_end_after_random_failures(seed, capfd):
    run_world(LostHosts(seed), check_world, events=80, shares=(0.0, 0.05, 0.2))
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.soak
def test_reverts_from_lost_hosts_end_after_random_failures_of_many_seeds():
    for seed in range(20, 1000):
        run_world(LostHosts(seed), check_world, events=80, shares=(0.0, 0.05, 0.2))
