"""Moves while everything goes wrong, by chance from a seed: nothing runs twice, and nothing is leaked in the end."""

import random
from contextlib import suppress

import pytest

from roost.errors import Conflict, NotFound, Unavailable
from roost.model.names import uuid_bytes, uuid_text
from roost.model.orders import Answer, Discard
from roost.store.memory import MemoryStore
from tests.conducting import Server, action, failed
from tests.identities import uuid_named
from tests.resizing import Keeper, ask
from tests.unit.conductor.test_groups_that_move import checked as rule_holds
from tests.unit.conductor.test_troubled import Troubled
from tests.worlds import FixedClock, group, host, joined

HOSTS, EVENTS = 4, 160
KINDS = ["migrate", "migrate", "resize", "resize", "confirm", "confirm", "revert", "revert"]


class Worker(Keeper):
    """An agent that does what it is told, if it feels like it, and remembers what it said."""

    def __init__(self, world, name, others):
        super().__init__(world.servers[0], name, others)
        self.world, self.is_there, self.is_calm, self.lives = world, True, False, 1
        self.turns, self.said, self.untold = {}, {}, {}

    def come(self):
        """Be back, anew or as it was."""
        if self.world.chance.random() < 0.5:
            self.lives += 1
            self.life = uuid_named(f"{self.host} {self.lives}")
            self.run = uuid_bytes(self.life)
        self.guests = self.has
        self.register()
        self.is_there = True

    def work(self, script=None):
        """Ask for orders, and do some of them."""
        self.server = self.world.server()
        told = self.poll()
        if told.unknown:
            self.guests = self.has
            self.register()
            told = self.poll()
        for order in {each.id: each for each in (*told.orders, *self.untold.values())}.values():
            fate = 1.0 if self.is_calm else self.world.chance.random()
            if fate < 0.15:
                continue  # It does not come to it, or the answer to its poll was lost.
            if order.id not in self.said:
                self.said[order.id] = self.tried(order, fate)
                self.untold[order.id] = order
                self.look(order)
            if fate < 0.3:
                continue  # Its answer is lost.
            if self.answer(order, self.said[order.id]) is False:
                self.unwanted(order)
            self.untold.pop(order.id, None)

    def tried(self, order, fate) -> Answer:
        """Do what is ordered, or fail; give the answer."""
        if order.turn < self.turns.get(order.instance, 0):
            return Answer(outcome="stale", problem="a later operation was here")
        self.turns[order.instance] = order.turn
        if fate < 0.45 and action(order) != "destroy":
            return failed("it is broken") if fate < 0.4 else Answer(outcome="aborted", problem="it is very broken")
        with suppress(AssertionError, KeyError):
            return self.result(order)
        return Answer(outcome="aborted", problem="it is not here")

    def unwanted(self, order):
        """Undo what was withdrawn, unless a later order took it over."""
        if self.turns.get(order.instance, 0) > order.turn:
            return
        if action(order) in {"prepare", "finish"}:
            self._discard(order.instance, Discard(), order.operation)
        elif action(order) == "spawn":
            self._destroy(order.instance, order.act, order.operation)

    def look(self, order):
        """See that nothing runs twice, but for what a host was given up with while it was built elsewhere."""
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
    def has(self):
        """What there is: uuid -> state."""
        return {uuid: copy.state for uuid, copy in {**self.coming, **self.copies}.items()}


class World:
    """Two servers on one database, agents that fail and go, and people who move things."""

    def __init__(self, seed):
        self.chance, self.clock = random.Random(seed), FixedClock()
        first = MemoryStore()
        self.stores = [Troubled(first, self.chance), Troubled(first.peer(), self.chance)]
        self.servers = [Server(store, clock=self.clock, seed=seed + at) for at, store in enumerate(self.stores)]
        self.jobs = [server.jobs(f"j{at}") for at, server in enumerate(self.servers)]
        fleet = joined(
            *(host(f"h{number}", VCPU=6, MEMORY_MB=100 - number) for number in range(HOSTS)),
            group("g", "anti-affinity"),
        )
        self.servers[0].run(lambda _current: self.servers[0].roost.install(fleet))
        others, self.hands = {}, []
        for number in range(HOSTS):
            self.hands.append(Worker(self, f"h{number}", others))
            self.hands[-1].register()
        self.names, self.asked = [], 0
        self.ghosts = []  # copies that nobody asks for any more

    def server(self):
        """Give one of the servers."""
        return self.chance.choice(self.servers)

    def event(self):
        """Let something happen."""
        acts = [self.build, self.delete, *[self.move] * 4, *[self.turn] * 3, self.pass_time, self.comes, self.goes,
                *[self.works] * 8]  # fmt: skip
        with suppress(Unavailable, Conflict, NotFound):
            self.chance.choice(acts)()

    def event_of_lost(self):
        """Let something happen while instances go back from hosts that are lost."""
        acts = [self.delete, *[self.revert_lost] * 3, *[self.turn] * 4, self.pass_time, self.comes, self.goes,
                *[self.works] * 6]  # fmt: skip
        with suppress(Unavailable, Conflict, NotFound):
            self.chance.choice(acts)()

    def resized(self):
        """Let instances be, each of which waits to be confirmed or reverted."""
        for number in range(3):
            self.names.append(f"i{number}")
            self.server().build(f"i{number}", key=f"i{number}", **({"in_group": "g"} if number < 2 else {}))
        self.calm_down()
        for name in self.names:
            self.asked += 1
            ask(self.server(), "migrate", name, key=f"first {name}", is_verified=True)
        self.calm_down()
        for hand in self.hands:
            hand.is_calm = False

    def build(self):
        """Ask for an instance, at times one of a group."""
        if len(self.names) < 5:
            self.names.append(f"i{len(self.names)}")
            more = {"in_group": "g"} if self.chance.random() < 0.5 else {}
            self.server().build(self.names[-1], key=self.names[-1], **more)

    def delete(self):
        """Ask for the end of an instance, rarely."""
        if self.names and self.chance.random() < 0.3:
            self.server().delete(self.chance.choice(self.names), key=f"end {self.chance.random()}")

    def move(self):
        """Ask that an instance moves, stays or goes back."""
        if self.names:
            self.asked += 1
            kind = self.chance.choice(KINDS)
            ask(
                self.server(), kind, self.chance.choice(self.names), key=f"{kind} {self.asked}",
                vcpus=self.chance.choice([1, 2]) if kind == "resize" else 0, is_verified=self.chance.random() < 0.5,
                is_lost=self.chance.random() < 0.5,
            )  # fmt: skip

    def revert_lost(self):
        """Let a host be gone, and ask that an instance goes back from there."""
        rows = [row for row in self.servers[0].reader.statuses(most=9999) if row.status == "VERIFY_RESIZE"]
        row = self.chance.choice(rows or [None])
        hand = next((each for each in self.hands if row is not None and each.host == row.host), None)
        if hand is not None and hand.is_there:
            hand.is_there = False
            hand.leave()
        if row is not None:
            self.asked += 1
            is_lost = self.chance.random() < 0.8
            ask(self.server(), "revert", row.name, key=f"lost {self.asked}", is_lost=is_lost)

    def turn(self):
        """Let a conductor do what is due."""
        at = self.chance.randrange(2)
        self.servers[at].conductor(f"c{at}").turn()

    def pass_time(self):
        """Let time go on, and agents be heard."""
        self.clock.time_s += self.chance.choice([0.1, 1, 5, 31, 130, 620])
        for hand in self.hands:
            if hand.is_there:
                hand.beat()
        self.chance.choice(self.jobs).turn()

    def goes(self):
        """Let an agent end, saying so or not."""
        hand = self.chance.choice(self.hands)
        if hand.is_there and self.chance.random() < 0.5:
            hand.is_there = False
            if self.chance.random() < 0.5:
                hand.leave()

    def comes(self):
        """Let an agent be back."""
        hand = self.chance.choice(self.hands)
        if not hand.is_there:
            hand.come()

    def works(self):
        """Let an agent do what it is told."""
        hand = self.chance.choice(self.hands)
        if hand.is_there:
            hand.work()

    def calm_down(self):
        """Let the trouble end, and everybody come to rest."""
        for store in self.stores:
            store.share = 0.0
        for hand in self.hands:
            hand.is_calm = True
            if not hand.is_there:
                hand.come()
        for _ in range(150):
            self.clock.time_s += 11
            for hand in self.hands:
                hand.beat()
            for at, server in enumerate(self.servers):
                self.jobs[at].turn()
                server.turn(f"c{at}")
            for hand in self.hands:
                hand.work()
            agents = self.servers[0].reader.agents()
            if not self.servers[0].open_operations() and all(agent.state == "ready" for agent in agents):
                return
        raise AssertionError(f"they never come to rest: {self.servers[0].open_operations()}")

    def stop(self):
        """Let go of everything."""
        for server in self.servers:
            server.stop()


def checked(world):
    """See that what is held is what there is, and that it is where it runs."""
    server = world.servers[0]
    server.run(lambda current: current.refresh())
    holders = server.run(lambda current: dict(current.state.holders))
    there = {}
    for hand in world.hands:
        for uuid, state in hand.has.items():
            there.setdefault(uuid, {})[hand.host] = state
    expected = set()
    for status in server.reader.statuses(most=9999):
        uuid = uuid_text(status.uuid)
        assert (status.operation_id, status.task) == (0, ""), status
        copies = there.get(uuid, {})
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
    rule_holds(server, "anti-affinity", 1)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_to_moves_everything_comes_to_rest(seed, capfd):
    comes_to_rest(seed)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.soak
def test_whatever_happens_to_moves_with_many_seeds_everything_comes_to_rest():
    for seed in range(20, 1000):
        comes_to_rest(seed)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_while_they_go_back_from_lost_hosts_everything_comes_to_rest(seed, capfd):
    comes_to_rest(seed, is_lost=True)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.soak
def test_whatever_happens_while_they_go_back_from_lost_hosts_with_many_seeds_everything_comes_to_rest():
    for seed in range(20, 1000):
        comes_to_rest(seed, is_lost=True)


def comes_to_rest(seed, *, is_lost=False):
    """Live through the trouble of a seed."""
    world = World(seed)
    try:
        if is_lost:
            world.resized()
        for store in world.stores:
            store.share = world.chance.choice([0.0, 0.05, 0.2])
        for _ in range(80 if is_lost else EVENTS):
            (world.event_of_lost if is_lost else world.event)()
        world.calm_down()
        checked(world)
    finally:
        world.stop()
