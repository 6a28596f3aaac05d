"""Worlds in which everything goes wrong, by chance from a seed, until it ends and everything has to come to rest."""

import random
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace

from roost.errors import Conflict, NotFound, Unavailable
from roost.model.names import uuid_text
from roost.model.work.orders import Answer
from roost.store.memory_store import MemoryStore
from tests.support.conductors.conductors import TERMS, Hand, Server, action, failed
from tests.support.fleets.worlds import FixedClock, group, host, joined, wish

HOSTS = 5
CHANGES = ["shelve", "shelve", "offload", "unshelve", "unshelve", "rebuild", "reboot", "reset", "reset"]


def comes_to_rest(world, checked, *, events, shares=(0.0, 0.05, 0.3)):
    """Live through the trouble of a world; return what is found in the end.

    Args:
        checked: sees that all is well, and gives what it found.
        events: so many.
        shares: of the commits one of these fails.
    """
    try:
        for store in world.stores:
            store.share = world.chance.choice(shares)
        for _ in range(events):
            world.event()
        world.calm_down()
        return checked(world)
    finally:
        world.stop()


class Troubled:
    """A store of which each commit may fail, made or not, while there is trouble."""

    def __init__(self, store, chance):
        self._store, self._chance = store, chance
        self.share = 0.0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, items):
        """See ``Store.commit``."""
        fate = self._chance.random()
        if fate < self.share / 2:
            raise Unavailable("the database is gone")
        committed = self._store.commit(items)
        if fate < self.share:
            raise Unavailable("the database is gone")
        return committed


class World(ABC):
    """Two servers on one database, agents that fail, leave and come back, and people who ask for things.

    Args:
        fleet: what there is.
        names: of the hosts that have agents.
    """

    PAUSES = (0.1, 1, 5, 31, 130)  # that time makes, in seconds
    TURNS = 100  # within which everybody comes to rest

    def __init__(self, seed, fleet, names):
        self.chance, self.clock = random.Random(seed), FixedClock()
        first = MemoryStore()
        self.stores = [Troubled(first, self.chance), Troubled(first.peer(), self.chance)]
        self.servers = [Server(store, clock=self.clock, seed=seed + at) for at, store in enumerate(self.stores)]
        self.jobs = [server.jobs(f"j{at}") for at, server in enumerate(self.servers)]
        self.servers[0].run(lambda _current: self.servers[0].roost.install(fleet))
        self.names, self.hands = [], []
        for name in names:
            self.hands.append(self.hand(name))
            self.hands[-1].register()

    @abstractmethod
    def hand(self, name):
        """Return the agent of a host."""

    @abstractmethod
    def acts(self):
        """Return what may happen, as often as it is likely to."""

    def server(self):
        """Return one of the servers."""
        return self.chance.choice(self.servers)

    def event(self):
        """Let something happen."""
        with suppress(Unavailable, Conflict, NotFound):
            self.chance.choice(self.acts())()

    def turn(self):
        """Let a conductor do what is due."""
        at = self.chance.randrange(2)
        self.servers[at].conductor(f"c{at}").turn()

    def jobs_turn(self):
        """Let a process do its periodic jobs."""
        self.chance.choice(self.jobs).turn()

    def pass_time(self):
        """Let time go on, and agents be heard."""
        self.clock.time_s += self.chance.choice(self.PAUSES)
        for hand in self.hands:
            if hand.is_there:
                hand.beat()
        self.jobs_turn()

    def agent_goes(self):
        """Let an agent end, saying so or not."""
        hand = self.chance.choice(self.hands)
        if hand.is_there:
            hand.is_there = False
            if self.chance.random() < 0.3:
                hand.leave()

    def agent_comes(self):
        """Let an agent be back, as it was or anew."""
        hand = self.chance.choice(self.hands)
        if not hand.is_there:
            hand.come(is_new=self.chance.random() < 0.5)

    def agent_works(self):
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
                hand.come(is_new=True)
        for _ in range(self.TURNS):
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


class Changing(World):
    """A world in which instances are built, stopped, shelved, rebuilt and so on, and stay on their hosts."""

    def __init__(self, seed):
        names = [f"h{number}" for number in range(HOSTS)]
        hosts = [host(name, VCPU=3, MEMORY_MB=100 - number) for number, name in enumerate(names)]
        super().__init__(seed, joined(*hosts, group("apart", "anti-affinity")), names)
        terms = replace(TERMS, shelved_offload_time_s=self.chance.choice([-1.0, 0.0, 20.0]))
        for server in self.servers:
            server.terms = terms

    def hand(self, name):
        """Return the agent of a host."""
        return Worker(self, name)

    def acts(self):
        """Return what may happen, as often as it is likely to."""
        return [
            self.build,
            self.delete,
            self.power,
            self.change,
            self.change,
            *[self.turn] * 3,
            self.pass_time,
            self.agent_comes,
            self.agent_goes,
            *[self.agent_works] * 6,
            self.jobs_turn,
        ]

    def build(self):
        """Ask for instances, of a group that keeps them apart at times."""
        count = self.chance.choice([1, 1, 2, 4])
        names = [f"i{len(self.names) + at}" for at in range(count)]
        self.names += names
        more = {"in_group": "apart"} if self.chance.random() < 0.3 else {}
        self.server().build(*names, key=names[0], **more)

    def delete(self):
        """Ask for the end of an instance."""
        if self.names:
            name = self.chance.choice(self.names)
            self.server().delete(name, key=f"{name} {self.chance.random()}", is_forced=self.chance.random() < 0.1)

    def power(self):
        """Ask that an instance starts or stops."""
        if self.names:
            self.server().power(self.chance.choice(self.names), self.chance.choice(["start", "stop"]))

    def change(self):
        """Ask that an instance is shelved, rebuilt and so on."""
        if self.names:
            name, kind = self.chance.choice(self.names), self.chance.choice(CHANGES)
            key, server = f"{kind} {self.chance.random()}", self.server()
            if kind in {"reboot", "reset"}:
                server.power(name, kind, key=key)
            else:
                server.change(name, kind, key=key)


class Worker(Hand):
    """An agent that does what it is told, if it feels like it."""

    def __init__(self, world, name):
        super().__init__(world.servers[0], name)
        self.world, self.is_there, self.is_calm = world, True, False
        self.turns = {}  # the highest turn of each instance that it saw
        self.made = {}  # instance -> the order by which it came to be
        self.done = {}  # order -> the answer, as in a journal

    def come(self, *, is_new):
        """Be back."""
        if is_new:
            self.live_again()
        self.register()
        self.is_there = True

    def work(self):
        """Ask for orders, and do some of them."""
        self.server = self.world.server()
        told = self.poll()
        if told.unknown:
            self.register()
            told = self.poll()
        for order in told.orders:
            fate = 1.0 if self.is_calm else self.world.chance.random()
            if fate < 0.2:
                continue  # It does not come to it, or the answer to its poll was lost.
            if order.id not in self.done:
                self.done[order.id] = self.result(order, fate)
            if fate < 0.4:
                continue  # Its answer is lost.
            if self.answer(order, self.done[order.id]) is False and self.made.get(order.instance) == order.id:
                self.made.pop(order.instance)
                self.guests.pop(order.instance, None)

    def result(self, order, fate) -> Answer:
        """Do what is ordered, or fail; return the answer."""
        if order.turn < self.turns.get(order.instance, 0):
            return Answer(outcome="stale", problem="a later operation was here")
        self.turns[order.instance] = order.turn
        if fate < 0.6:
            return failed("it is broken") if fate < 0.55 else Answer(outcome="aborted", problem="it is very broken")
        if action(order) == "destroy":
            self.guests.pop(order.instance, None)
            self.made.pop(order.instance, None)
        elif action(order) == "spawn":
            self.guests[order.instance] = "running"
            self.made[order.instance] = order.id
        elif order.instance not in self.guests and action(order) != "inspect":
            return failed("there is nothing of it")
        elif action(order) not in {"save", "inspect"}:
            is_off = action(order) == "power_off" or (action(order) == "rebuild" and not order.act.guest.is_on)
            self.guests[order.instance] = "stopped" if is_off else "running"
        return self.told(order)


def held_where_they_run(world):
    """See that what is claimed is what there is, and that it is where it runs."""
    server = world.servers[0]
    running = {}
    for hand in world.hands:
        for uuid in hand.guests:
            running.setdefault(uuid, []).append(hand.host)
    held = 0
    for status in server.reader.statuses(most=9999):
        uuid = uuid_text(status.uuid)
        where = server.run(lambda current, key=status.uuid: current.state.holders.get(key))
        held += where is not None
        assert (status.operation_id, status.task) == (0, ""), status
        assert (where is not None) is bool(status.host), status
        assert running.get(uuid, []) in ([], [status.host]), (status, running[uuid])
        if status.status in {"ACTIVE", "SHUTOFF", "SHELVED"}:
            assert running.get(uuid) == [status.host], status
        elif status.status in {"DELETED", "SHELVED_OFFLOADED"}:
            assert uuid not in running, status
        else:
            assert (status.status, bool(status.fault)) == ("ERROR", True), status
    assert server.used()["VCPU"] == held
    everything = server.run(lambda current: len(current.state.holders))
    assert everything == held
    for other in world.servers:
        other.run(lambda _current, other=other: other.roost.decide(wish(), dry_run=True))
        assert other.used() == server.used()
