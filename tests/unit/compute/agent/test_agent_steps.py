"""Orders to an agent, with whatever may happen on the way: each takes effect once, and none is lost."""

import random
from collections import Counter
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.state_machine import Agent
from roost.compute.agent.tasks import Clean, Look, Register, Tell, Undo, Work
from roost.compute.drivers.fake.driver import Fake
from roost.compute.drivers.fake.guests import MemoryShelf
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import RoostError
from roost.model.work.agent_terms import HostTerms
from roost.model.work.guest import GuestReport
from roost.model.work.orders import Destroy, OwnNode, Poll, Power, Rebuild, Spawn
from tests.support.agents.scripted_agents import HOST, Dead, MemoryServer, PlainTracker, order, spec
from tests.support.fleets.worlds import uuid_named

GUESTS = ("a", "b")
FAILING = Script(
    fault=(Fault(action="spawn", kind="failed", share=0.2), Fault(action="power", kind="crash", share=0.1))
)
EVENTS = {
    "do": 40,
    "order": 15,
    "poll": 15,
    "tick": 5,
    "withdraw": 6,
    "lose": 8,
    "repeat": 8,
    "unheard": 3,
    "crash": 1,
    "restart": 1,
    "break": 3,
}


class Seen(NamedTuple):
    """What an agent is told that it has; more may have happened since."""

    guests: tuple[GuestReport, ...]


class Fragile:
    """Passes calls on; at one of them, before it or after it, the process is gone."""

    def __init__(self, inner, world, names):
        self._inner, self._world, self._names = inner, world, names

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if name not in self._names:
            return found

        def call(*words, **more):
            self._world.strike()
            is_new = self._world.asked(name, *words)
            came = found(*words, **more)
            self._world.builds.update([words[-1]] if is_new else [])
            self._world.strike()
            return came

        return call


def drives(task):
    """Say whether the driver takes part in a task."""
    return isinstance(task, (Work, Undo, Clean))


class World:
    """A server, a conductor that orders one thing of a guest after the other, and an agent that may die."""

    def __init__(self, seed):
        self.server, self.kept, self.shelf = MemoryServer(), Journal(None), MemoryShelf()
        self.chance = random.Random(seed)
        self.now_s, self.runs, self.orders, self.left = 0.0, 0, 0, None
        self.turns = Counter()  # of guests
        self.turn_of, self.acted_on = {}, {}  # of operations; the newest turn that the driver was asked for
        self.said = []  # answers to polls, which may come late or again
        self.ended = set()  # orders that were done, and written down
        self.builds = Counter()  # how often a guest came to be, by operation
        self.live()

    # --- the agent ---

    def live(self):
        """Start the agent; what it knew is gone but for its journal, and guests go on."""
        self.runs, self.left = self.runs + 1, None
        run = uuid_named(f"run {self.runs}")
        self.plain = Fake(FAILING, terms=HostTerms(), chance=self.chance, shelf=self.shelf, wait=lambda _: None)
        self.plain.start(HOST)
        self.driver = Fragile(self.plain, self, ("spawn", "destroy", "power", "rebuild"))
        journal = Fragile(self.kept, self, ("begin", "finish", "take", "forget", "hold", "pause", "resume"))
        tracker = PlainTracker(self.plain, self.kept)
        tracker.update(HOST, is_startup=True)
        self.acting = OrderExecutor(HOST, run=run, driver=self.driver, journal=journal, use_of=tracker.use)
        self.agent = Agent(
            Identity(host=HOST, run=run, driver="fake"),
            journal,
            driver_timeout_s=1e9,
            sync_s=self.chance.choice((0.0, 30.0)),
        )
        self.agent.on_tracked()
        self.tasks = []

    def strike(self):
        """Let the process be gone, if that was to happen here."""
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                raise Dead

    def asked(self, name, *words):
        """Check what the driver is asked for, and say whether it is to build a guest."""
        if name not in ("spawn", "rebuild", "destroy"):
            return False
        guest, operation = getattr(words[0], "uuid", words[0]), words[-1]
        if operation not in self.turn_of:
            return False  # The server said so when the agent came.
        there = self.plain.inspect(guest)
        turn = self.turn_of[operation]
        assert turn >= self.acted_on.get(guest, 0) or (there is not None and there.operation == operation)
        self.acted_on[guest] = max(turn, self.acted_on.get(guest, 0))
        return name == "spawn" and (there is None or there.operation != operation)

    def do(self, number, *, is_heard=True):
        """Carry out one of the tasks of the agent; it may have to be said twice until it is heard."""
        self.tasks += self.agent.due(self.now_s)
        if not self.tasks:
            return
        busy = [
            each.instance if isinstance(each, Clean) else each.order.instance for each in self.tasks if drives(each)
        ]
        assert len(set(busy)) == len(busy), "two threads would be at one guest"
        task = self.tasks.pop(number % len(self.tasks))
        match task:
            case Look():
                self.tasks.append(Seen(tuple(self.plain.guests())))
            case Seen():
                self.agent.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], task.guests)
            case Register():
                for _ in range(1 if is_heard else 2):
                    registered = self.server.register(HOST, task.registration)
                self.agent.on_registered(registered, self.now_s)
            case Tell():
                try:
                    for _ in range(1 if is_heard else 2):
                        self.server.answer(task.order.id, task.answer)
                except RoostError as error:
                    self.agent.untold(task.order, error, self.now_s)
                else:
                    self.agent.on_delivered(task.order)
            case _:
                key = (task.order.operation, task.order.number) if isinstance(task, Work) else None
                assert key not in self.ended, "what was done is done again"
                self.agent.on_worked(task, self.acting.carry_out(task), self.now_s)
                self.ended |= {key} - {None}

    def poll(self):
        """Ask for orders; return the answer, and to which run of the agent."""
        asking = self.agent.polling()
        if asking is None:
            return None
        return self.runs, asking, self.server.poll(Poll(agents=(asking,), wait_s=0.0))

    def hear(self, said):
        """Let an answer to a poll arrive; those to a process that is gone do not."""
        if said is None or said[0] != self.runs:
            return
        _, asking, polled = said
        self.agent.on_polled(
            asking.fence,
            polled.orders,
            now_s=self.now_s,
            withdrawn=polled.withdrawn,
            is_unknown=bool(polled.unknown),
            is_superseded=bool(polled.superseded),
        )

    # --- the conductor ---

    def lines(self, guest):
        """Give the orders about a guest."""
        return [line for line in self.server.book.lines if line.order.instance == uuid_named(guest)]

    def put(self, guest, act):
        """Order something in a turn of its own."""
        self.turns[guest] += 1
        self.orders += 1
        ordered = order(act, of=guest, turn=self.turns[guest], order_id=self.orders)
        self.turn_of[ordered.operation] = self.turns[guest]
        self.server.put(ordered)

    def ask(self, number):
        """Order what can be asked of a guest now, if nothing else is."""
        guest = GUESTS[number % len(GUESTS)]
        lines = self.lines(guest)
        if any(line.state == "waiting" for line in lines):
            return
        if not self.is_there(lines):
            self.put(guest, Destroy() if number == 7 else Spawn(spec(guest)))
        else:
            acts = (Power(is_on=False), Power(is_on=True), Rebuild(spec(guest, image="new")), Destroy())
            self.put(guest, acts[number // 2])

    def withdraw(self, number):
        """Want an order no more; a guest of which nobody knows what it is has to go, or the agent sees to it."""
        guest = GUESTS[number % len(GUESTS)]
        for line in self.lines(guest):
            if line.state == "waiting":
                self.server.withdraw(line.order.id)
                if number > 3 or not isinstance(line.order.act, Spawn):
                    self.put(guest, Destroy())
                return

    def is_there(self, lines):
        """Say whether there is a guest after all that was answered."""
        is_there = False
        for line in lines:
            if line.answer is not None and line.answer.outcome == "ok" and isinstance(line.order.act, (Spawn, Destroy)):
                is_there = isinstance(line.order.act, Spawn)
        return is_there

    # --- what happens ---

    def happen(self, event, number):
        """Let one thing happen."""
        acts = {
            "order": lambda: self.ask(number),
            "withdraw": lambda: self.withdraw(number),
            "poll": lambda: self.said.append(self.poll()) or self.hear(self.said[-1]),
            "lose": lambda: self.said.append(self.poll()),
            "repeat": lambda: self.hear(self.said[-1 - number] if number < len(self.said) else None),
            "do": lambda: self.do(number),
            "unheard": lambda: self.do(number, is_heard=False),
            "tick": self.tick,
            "crash": self.live,
            "restart": self.server.book.runs.clear,
            "break": lambda: setattr(self, "left", number + 1),
        }
        try:
            acts[event]()
        except Dead:
            self.live()

    def tick(self):
        """Let time pass."""
        self.now_s += 20.0

    def settle(self):
        """Let nothing go wrong any more, until there is nothing to do."""
        self.left = None
        for _ in range(40):
            self.tick()
            self.happen("poll", 0)
            for _ in range(20):
                self.do(0)
        assert self.agent.end is None
        assert self.agent.is_idle
        for guest in GUESTS:
            built = [line for line in self.lines(guest) if isinstance(line.order.act, (Spawn, Destroy))]
            is_built = bool(built) and isinstance(built[-1].order.act, Spawn) and built[-1].answer is not None
            if is_built and built[-1].answer.outcome == "ok":
                assert self.plain.inspect(uuid_named(guest)) is not None, f"{guest} was built, and is not there"


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 300))
def test_whatever_is_repeated_lost_or_dies_each_order_takes_effect_once(seed, count):
    world, draw = World(seed), random.Random(seed)
    for event in draw.choices([*EVENTS], [*EVENTS.values()], k=count):
        world.happen(event, draw.randrange(8))
    world.settle()
    assert world.agent.polling().held == ()
    assert max(world.builds.values(), default=0) <= 1
    for guest in GUESTS:
        lines = world.lines(guest)
        assert [line for line in lines if line.state == "waiting"] == []
        for line in lines:
            if line.answer is not None and line.answer.outcome != "ok":
                assert isinstance(line.order.act, (Spawn, Power)), line
                assert "was to go wrong" in line.answer.problem
        there = world.plain.inspect(uuid_named(guest))
        assert (there is not None) == world.is_there(lines), lines
        if there is not None:
            assert there.operation in {line.order.operation for line in lines if line.answer is not None}
        assert (uuid_named(guest) in world.kept.instances(HOST)) == (there is not None)
