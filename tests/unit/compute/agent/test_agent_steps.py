"""Each order takes effect exactly once, despite repeats, losses and crashes."""

import random
from collections import Counter
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.state_machine import Agent
from roost.compute.agent.tasks import Clean, Register, Reply, Scan, Undo, Work
from roost.compute.drivers.fake.driver import Fake
from roost.compute.drivers.fake.guests import MemoryShelf
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import RoostError
from roost.model.work.agent_terms import HostTerms
from roost.model.work.guest import GuestReport
from roost.model.work.orders import Destroy, OwnNode, Poll, Power, Rebuild, Spawn
from tests.support.agents.scripted_agents import HOST, AgentDeath, MemoryServer, PlainTracker, order, spec
from tests.support.fleets.worlds import uuid_named

GUESTS = ("a", "b")
FAILING = Script(
    fault=(Fault(action="spawn", kind="failed", share=0.2), Fault(action="power", kind="crash", share=0.1))
)
EVENTS = {
    "task": 40,
    "order": 15,
    "poll": 15,
    "tick": 5,
    "withdraw": 6,
    "lose poll": 8,
    "repeat poll": 8,
    "repeat request": 3,
    "crash": 1,
    "restart server": 1,
    "crash soon": 3,
}


class ScanResult(NamedTuple):
    """The guests at the time of a scan; later tasks may have changed them."""

    guests: tuple[GuestReport, ...]


class CrashingProxy:
    """Forwards calls; the process may die before or after each of the named ones."""

    def __init__(self, inner, simulation, names):
        self._inner, self._simulation, self._names = inner, simulation, names

    def __getattr__(self, name):
        method = getattr(self._inner, name)
        if name not in self._names:
            return method

        def call(*arguments, **options):
            self._simulation.crash_if_due()
            is_new = self._simulation.check_driver_call(name, *arguments)
            result = method(*arguments, **options)
            self._simulation.build_counts.update([arguments[-1]] if is_new else [])
            self._simulation.crash_if_due()
            return result

        return call


def uses_driver(task):
    """Return whether a task calls the driver."""
    return isinstance(task, (Work, Undo, Clean))


class AgentSimulation:
    """A server, a conductor that sends one order at a time for each guest, and an agent that may die."""

    def __init__(self, seed):
        self.server, self.journal, self.shelf = MemoryServer(), Journal(None), MemoryShelf()
        self.chance = random.Random(seed)
        self.now_s, self.runs, self.orders, self.calls_left = 0.0, 0, 0, None
        self.turns = Counter()  # by guest
        self.turn_of, self.newest_turn = {}, {}  # by operation; newest turn of a driver call, by guest
        self.polls = []  # answers to polls, which may arrive late or twice
        self.completed = set()  # orders whose result was recorded
        self.build_counts = Counter()  # number of builds, by operation
        self.start_agent()

    # --- the agent ---

    def start_agent(self):
        """Start the agent; only its journal survives, and guests keep running."""
        self.runs, self.calls_left = self.runs + 1, None
        run = uuid_named(f"run {self.runs}")
        self.fake_driver = Fake(FAILING, terms=HostTerms(), chance=self.chance, shelf=self.shelf, wait=lambda _: None)
        self.fake_driver.start(HOST)
        self.driver = CrashingProxy(self.fake_driver, self, ("spawn", "destroy", "power", "rebuild"))
        journal = CrashingProxy(self.journal, self, ("begin", "finish", "take", "forget", "hold", "pause", "resume"))
        tracker = PlainTracker(self.fake_driver, self.journal)
        tracker.update(HOST, is_startup=True)
        self.executor = OrderExecutor(HOST, run=run, driver=self.driver, journal=journal, use_of=tracker.use)
        self.agent = Agent(
            Identity(host=HOST, run=run, driver="fake"),
            journal,
            driver_timeout_s=1e9,
            sync_s=self.chance.choice((0.0, 30.0)),
        )
        self.agent.on_tracked()
        self.tasks = []

    def crash_if_due(self):
        """Raise Dead if the process is due to die at this call."""
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left <= 0:
                raise AgentDeath

    def check_driver_call(self, name, *arguments):
        """Check that a call is not older than the last one for its guest; return whether it builds a guest."""
        if name not in ("spawn", "rebuild", "destroy"):
            return False
        guest, operation = getattr(arguments[0], "uuid", arguments[0]), arguments[-1]
        if operation not in self.turn_of:
            return False  # The server requested it at registration.
        found = self.fake_driver.inspect(guest)
        turn = self.turn_of[operation]
        assert turn >= self.newest_turn.get(guest, 0) or (found is not None and found.operation == operation)
        self.newest_turn[guest] = max(turn, self.newest_turn.get(guest, 0))
        return name == "spawn" and (found is None or found.operation != operation)

    def run_task(self, number, *, is_sent_once=True):
        """Run one of the agent's tasks; a request may have to be sent twice."""
        self.tasks += self.agent.due(self.now_s)
        if not self.tasks:
            return
        instances = [
            each.instance if isinstance(each, Clean) else each.order.instance
            for each in self.tasks
            if uses_driver(each)
        ]
        assert len(set(instances)) == len(instances), "two tasks of one guest run at once"
        task = self.tasks.pop(number % len(self.tasks))
        match task:
            case Scan():
                self.tasks.append(ScanResult(tuple(self.fake_driver.guests())))
            case ScanResult():
                self.agent.on_scan([OwnNode(node=HOST, uuid=uuid_named(HOST))], task.guests)
            case Register():
                for _ in range(1 if is_sent_once else 2):
                    answer = self.server.register(HOST, task.registration)
                self.agent.on_registered(answer, self.now_s)
            case Reply():
                try:
                    for _ in range(1 if is_sent_once else 2):
                        self.server.answer(task.order.id, task.answer)
                except RoostError as error:
                    self.agent.on_undelivered(task.order, error, self.now_s)
                else:
                    self.agent.on_delivered(task.order)
            case _:
                key = (task.order.operation, task.order.number) if isinstance(task, Work) else None
                assert key not in self.completed, "a completed order runs again"
                self.agent.on_worked(task, self.executor.carry_out(task), self.now_s)
                self.completed |= {key} - {None}

    def send_poll(self):
        """Poll for orders; return the run, the request and the answer, or None."""
        part = self.agent.poll_part()
        if part is None:
            return None
        return self.runs, part, self.server.poll(Poll(agents=(part,), wait_s=0.0))

    def deliver_poll(self, sent):
        """Deliver the answer to a poll, unless it belongs to a dead process."""
        if sent is None or sent[0] != self.runs:
            return
        _, part, answer = sent
        self.agent.on_polled(
            part.fence,
            answer.orders,
            now_s=self.now_s,
            withdrawn=answer.withdrawn,
            is_unknown=bool(answer.unknown),
            is_superseded=bool(answer.superseded),
        )

    # --- the conductor ---

    def lines_of(self, guest):
        """Return the server's records of the orders for a guest."""
        return [line for line in self.server.book.lines if line.order.instance == uuid_named(guest)]

    def add_order(self, guest, act):
        """Add an order for a guest in a new turn."""
        self.turns[guest] += 1
        self.orders += 1
        new_order = order(act, of=guest, turn=self.turns[guest], order_id=self.orders)
        self.turn_of[new_order.operation] = self.turns[guest]
        self.server.put(new_order)

    def order_next(self, number):
        """Add a valid order for a guest, unless one is open."""
        guest = GUESTS[number % len(GUESTS)]
        lines = self.lines_of(guest)
        if any(line.state == "waiting" for line in lines):
            return
        if not self.has_guest(lines):
            self.add_order(guest, Destroy() if number == 7 else Spawn(spec(guest)))
        else:
            actions = (Power(is_on=False), Power(is_on=True), Rebuild(spec(guest, image="new")), Destroy())
            self.add_order(guest, actions[number // 2])

    def withdraw(self, number):
        """Withdraw an open order of a guest; destroy the guest, unless the agent undoes the build itself."""
        guest = GUESTS[number % len(GUESTS)]
        for line in self.lines_of(guest):
            if line.state == "waiting":
                self.server.withdraw(line.order.id)
                if number > 3 or not isinstance(line.order.act, Spawn):
                    self.add_order(guest, Destroy())
                return

    def has_guest(self, lines):
        """Return whether the answers imply that the guest exists."""
        exists = False
        for line in lines:
            if line.answer is not None and line.answer.outcome == "ok" and isinstance(line.order.act, (Spawn, Destroy)):
                exists = isinstance(line.order.act, Spawn)
        return exists

    # --- events ---

    def apply_event(self, event, number):
        """Apply one event; if the process dies, start it again."""
        actions = {
            "order": lambda: self.order_next(number),
            "withdraw": lambda: self.withdraw(number),
            "poll": lambda: self.polls.append(self.send_poll()) or self.deliver_poll(self.polls[-1]),
            "lose poll": lambda: self.polls.append(self.send_poll()),
            "repeat poll": lambda: self.deliver_poll(self.polls[-1 - number] if number < len(self.polls) else None),
            "task": lambda: self.run_task(number),
            "repeat request": lambda: self.run_task(number, is_sent_once=False),
            "tick": self.tick,
            "crash": self.start_agent,
            "restart server": self.server.book.runs.clear,
            "crash soon": lambda: setattr(self, "calls_left", number + 1),
        }
        try:
            actions[event]()
        except AgentDeath:
            self.start_agent()

    def tick(self):
        """Advance the clock."""
        self.now_s += 20.0

    def run_until_idle(self):
        """Run without further faults until no work is left."""
        self.calls_left = None
        for _ in range(40):
            self.tick()
            self.apply_event("poll", 0)
            for _ in range(20):
                self.run_task(0)
        assert self.agent.end is None
        assert self.agent.is_idle
        for guest in GUESTS:
            changes = [line for line in self.lines_of(guest) if isinstance(line.order.act, (Spawn, Destroy))]
            is_built = bool(changes) and isinstance(changes[-1].order.act, Spawn) and changes[-1].answer is not None
            if is_built and changes[-1].answer.outcome == "ok":
                assert self.fake_driver.inspect(uuid_named(guest)) is not None, f"{guest} was built, and is not there"


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 300))
def test_each_order_takes_effect_once_despite_repeats_losses_and_crashes(seed, count):
    simulation, draw = AgentSimulation(seed), random.Random(seed)
    for event in draw.choices([*EVENTS], [*EVENTS.values()], k=count):
        simulation.apply_event(event, draw.randrange(8))
    simulation.run_until_idle()
    assert simulation.agent.poll_part().held == ()
    assert max(simulation.build_counts.values(), default=0) <= 1
    for guest in GUESTS:
        lines = simulation.lines_of(guest)
        assert [line for line in lines if line.state == "waiting"] == []
        for line in lines:
            if line.answer is not None and line.answer.outcome != "ok":
                assert isinstance(line.order.act, (Spawn, Power)), line
                assert "was made to fail" in line.answer.problem
        found = simulation.fake_driver.inspect(uuid_named(guest))
        assert (found is not None) == simulation.has_guest(lines), lines
        if found is not None:
            assert found.operation in {line.order.operation for line in lines if line.answer is not None}
        assert (uuid_named(guest) in simulation.journal.instances(HOST)) == (found is not None)
