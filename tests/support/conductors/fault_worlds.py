"""Worlds with random faults from a seed; when the faults end, the world has to become idle."""

import random
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace

from roost.errors import Conflict, NotFound, Unavailable
from roost.model.names import uuid_text
from roost.model.work.orders import Answer
from roost.store.memory_store import MemoryStore
from tests.support.conductors.conductors import TERMS, PlayedAgent, Server, action, failure
from tests.support.fleets.worlds import FixedClock, group, host, merge_fleets, small_request

HOSTS = 5
CHANGES = ["shelve", "shelve", "offload", "unshelve", "unshelve", "rebuild", "reboot", "reset", "reset"]


def run_world(world, checked, *, events, shares=(0.0, 0.05, 0.3)):
    """Run the faults of a world, then let it become idle; return the result of the check.

    Args:
        checked: the final check of the world.
        events: the number of random events.
        shares: the choices for the share of commits that fail.
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


class UnreliableStore:
    """A store whose commits fail at random, before or after they are written."""

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
    """Two servers on one database, agents that fail, leave and come back, and users with requests.

    Args:
        fleet: the initial fleet.
        names: the names of the hosts with agents.
    """

    PAUSES = (0.1, 1, 5, 31, 130)  # steps of the clock in seconds
    TURNS = 100  # the world must be idle after at most this number of turns

    def __init__(self, seed, fleet, names):
        self.chance, self.clock = random.Random(seed), FixedClock()
        first = MemoryStore()
        self.stores = [UnreliableStore(first, self.chance), UnreliableStore(first.peer(), self.chance)]
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
        """Return the possible events; an event occurs several times to make it more likely."""

    def server(self):
        """Return one of the servers."""
        return self.chance.choice(self.servers)

    def event(self):
        """Run one random event."""
        with suppress(Unavailable, Conflict, NotFound):
            self.chance.choice(self.acts())()

    def turn(self):
        """Run a conductor until nothing is due."""
        at = self.chance.randrange(2)
        self.servers[at].conductor(f"c{at}").turn()

    def jobs_turn(self):
        """Run the periodic jobs of a process."""
        self.chance.choice(self.jobs).turn()

    def pass_time(self):
        """Advance the clock, and send heartbeats of the agents."""
        self.clock.time_s += self.chance.choice(self.PAUSES)
        for hand in self.hands:
            if hand.is_there:
                hand.beat()
        self.jobs_turn()

    def agent_goes(self):
        """Stop an agent, with or without deregistration."""
        hand = self.chance.choice(self.hands)
        if hand.is_there:
            hand.is_there = False
            if self.chance.random() < 0.3:
                hand.leave()

    def agent_comes(self):
        """Bring an agent back, as the same run or a new one."""
        hand = self.chance.choice(self.hands)
        if not hand.is_there:
            hand.come(is_new=self.chance.random() < 0.5)

    def agent_works(self):
        """Let an agent carry out orders."""
        hand = self.chance.choice(self.hands)
        if hand.is_there:
            hand.work()

    def calm_down(self):
        """End the faults, and run until the world is idle."""
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
        raise AssertionError(f"the world never becomes idle: {self.servers[0].open_operations()}")

    def stop(self):
        """Close all servers."""
        for server in self.servers:
            server.stop()


class ChangeWorld(World):
    """A world with builds, stops, shelves, rebuilds and so on, but without moves."""

    def __init__(self, seed):
        names = [f"h{number}" for number in range(HOSTS)]
        hosts = [host(name, VCPU=3, MEMORY_MB=100 - number) for number, name in enumerate(names)]
        super().__init__(seed, merge_fleets(*hosts, group("apart", "anti-affinity")), names)
        terms = replace(TERMS, shelved_offload_time_s=self.chance.choice([-1.0, 0.0, 20.0]))
        for server in self.servers:
            server.terms = terms

    def hand(self, name):
        """Return the agent of a host."""
        return Worker(self, name)

    def acts(self):
        """Return the possible events; an event occurs several times to make it more likely."""
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
        """Request a build of instances, sometimes in an anti-affinity group."""
        count = self.chance.choice([1, 1, 2, 4])
        names = [f"i{len(self.names) + at}" for at in range(count)]
        self.names += names
        more = {"in_group": "apart"} if self.chance.random() < 0.3 else {}
        self.server().build(*names, key=names[0], **more)

    def delete(self):
        """Request the deletion of an instance."""
        if self.names:
            name = self.chance.choice(self.names)
            self.server().delete(name, key=f"{name} {self.chance.random()}", is_forced=self.chance.random() < 0.1)

    def power(self):
        """Request a start or stop of an instance."""
        if self.names:
            self.server().power(self.chance.choice(self.names), self.chance.choice(["start", "stop"]))

    def change(self):
        """Request a shelve, rebuild or similar change of an instance."""
        if self.names:
            name, kind = self.chance.choice(self.names), self.chance.choice(CHANGES)
            key, server = f"{kind} {self.chance.random()}", self.server()
            if kind in {"reboot", "reset"}:
                server.power(name, kind, key=key)
            else:
                server.change(name, kind, key=key)


class Worker(PlayedAgent):
    """An agent that carries out orders, skips them or fails, at random."""

    def __init__(self, world, name):
        super().__init__(world.servers[0], name)
        self.world, self.is_there, self.is_calm = world, True, False
        self.turns = {}  # instance -> highest turn in any order
        self.made = {}  # instance -> the order that created it
        self.done = {}  # order -> the answer, like a journal

    def come(self, *, is_new):
        """Come back and register."""
        if is_new:
            self.live_again()
        self.register()
        self.is_there = True

    def work(self):
        """Poll for orders, and carry out some of them."""
        self.server = self.world.server()
        reply = self.poll()
        if reply.unknown:
            self.register()
            reply = self.poll()
        for order in reply.orders:
            fate = 1.0 if self.is_calm else self.world.chance.random()
            if fate < 0.2:
                continue  # It has no time for the order, or the reply to its poll is lost.
            if order.id not in self.done:
                self.done[order.id] = self.result(order, fate)
            if fate < 0.4:
                continue  # Its answer is lost.
            if self.answer(order, self.done[order.id]) is False and self.made.get(order.instance) == order.id:
                self.made.pop(order.instance)
                self.guests.pop(order.instance, None)

    def result(self, order, fate) -> Answer:
        """Carry out an order, or fail; return the answer."""
        if order.turn < self.turns.get(order.instance, 0):
            return Answer(outcome="stale", problem="a later operation was here")
        self.turns[order.instance] = order.turn
        if fate < 0.6:
            return failure("it is broken") if fate < 0.55 else Answer(outcome="aborted", problem="it is very broken")
        if action(order) == "destroy":
            self.guests.pop(order.instance, None)
            self.made.pop(order.instance, None)
        elif action(order) == "spawn":
            self.guests[order.instance] = "running"
            self.made[order.instance] = order.id
        elif order.instance not in self.guests and action(order) != "inspect":
            return failure("there is nothing of it")
        elif action(order) not in {"save", "inspect"}:
            is_off = action(order) == "power_off" or (action(order) == "rebuild" and not order.act.guest.is_on)
            self.guests[order.instance] = "stopped" if is_off else "running"
        return self.complete_answer(order)


def check_allocations_match_guests(world):
    """Check that allocations match instances, and that each instance runs on the host of its allocations."""
    server = world.servers[0]
    running = {}
    for hand in world.hands:
        for uuid in hand.guests:
            running.setdefault(uuid, []).append(hand.host)
    held = 0
    for status in server.reader.statuses(limit=9999):
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
        other.run(lambda _current, other=other: other.roost.decide(small_request(), dry_run=True))
        assert other.used() == server.used()
