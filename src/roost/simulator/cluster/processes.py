"""Simulated servers: complete except for threads and sockets, on one shared store in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from roost.compat.adapter import adapt
from roost.conductor.jobs import Jobs
from roost.conductor.loop import Conductor, ConductorHooks
from roost.conductor.operation.events import Transition
from roost.conductor.operation.step import Terms
from roost.conductor.steps import TABLES
from roost.errors import Unavailable
from roost.model.settings.roost_settings import Settings
from roost.model.work.work_rows import OperationRow, Put
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.job import Task
from roost.product import Roost
from roost.scheduler import registry
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.query.pci_requests import PciAliases
from roost.simulator.cluster.environment.event_queue import InvariantBroken
from roost.simulator.cluster.environment.shared_state import Environment
from roost.simulator.seeded_random import SeededRandom

A = TypeVar("A")

# Transitions of operations as (kind, step, event, next step).
ALLOWED = frozenset(transition for kind, table in TABLES.items() for transition in table.transitions(kind))
DOWN_TIME_S = 10.0
TERMS = Terms(attempts_max=3, build_timeout_s=20.0, act_timeout_s=8.0, owner_s=6.0)
_SETTINGS = Settings()
# Range of seconds until a dead server restarts.
_RESTART_S = (0.5, 15.0)
# Range of seconds from an idle turn to the next turn. The next turn finds commits of other servers, and deadlines.
_IDLE_S = (0.3, 0.7)
# Seconds from a start, a wake-up or a busy turn to the next turn.
_BUSY_S = 0.02


@cache
def build_rules() -> Rules:
    """Build the rules of all servers once; they are stateless."""
    return registry.build(_SETTINGS, adapt=adapt)


class Process:
    """One server: it serves agents and clients, and its conductor advances operations.

    Args:
        world: shared by all servers.
        number: of this server.
    """

    def __init__(self, world: "Servers", number: int) -> None:
        self.name = f"server-{number}"
        self.is_up = False
        self._world, self._number, self._start_count, self._turns = world, number, 0, 0
        self._terms = replace(TERMS, shelved_offload_time_s=world.offload_s)

    def start(self) -> None:
        """Start the server with the state in the store."""
        world = self._world
        self._start_count += 1
        self.is_up = True
        store = world.store.peer()
        current = Current(store, clock=world.clock)
        chance = SeededRandom(world.seed * 1_000 + self._number * 100 + self._start_count)
        self.roost = Roost(store, _SETTINGS, current=current, clock=world.clock, random=chance, rules=build_rules())
        decide = world.rare.disturb(self.roost.scheduler.work)
        self.serving = Serving(current, decide=decide, on_work=self._wake_for, has_thread=False, retries=10)
        self.reader = store.work_reader(world.clock)
        product = ConductorHooks(
            decision=self.roost.decision,
            devices=PciAliases(_SETTINGS.pci).requests,
            terms=lambda: self._terms,
            note=self._count,
        )
        name = f"{self.name}.{self._start_count}"
        self._conductor = Conductor(name, cells=None, serving=self.serving, reader=self.reader, product=product)
        self._jobs = Jobs(
            name,
            serving=self.serving,
            reader=self.reader,
            down_time_s=lambda: DOWN_TIME_S,
            offload_s=lambda: self._terms.shelved_offload_time_s,
        )
        self._must_take_over = world.is_single
        store.before, store.after = self._before_commit, self._after_commit
        self._schedule_turn(_BUSY_S)

    def run(self, task: Task[A]) -> A:
        """Run a task as the deciding thread does.

        Raises:
            RoostError: the task's error.
            ProcessKilled: a fault killed this process at a commit.
        """
        return self.serving.run(task)

    def take_turn(self) -> int:
        """Run the due periodic jobs and operations; return the number of operations."""
        if self._world.clock.time_s < self._world.rare.stalled_until_s:
            return 0
        try:
            if self._must_take_over:
                self._conductor.take_over()
                self._must_take_over = False
            self._jobs.turn()
            return self._conductor.turn()
        except Unavailable:
            return 0

    def _schedule_turn(self, delay_s: float) -> None:
        """Schedule the next turn, and cancel an earlier schedule."""
        self._turns += 1
        self._world.events.schedule(delay_s, "look", self._make_turn(self._turns), detail=self.name)

    def _make_turn(self, number: int) -> Callable[[], None]:
        def take_turn() -> None:
            if not self.is_up or number != self._turns:
                return
            if self.take_turn():
                self._schedule_turn(_BUSY_S)
            elif number == self._turns:  # Otherwise, a wake-up has scheduled the next turn.
                self._schedule_turn(self._world.chance.uniform(*_IDLE_S))

        return take_turn

    def _wake_for(self, work: Sequence[Put]) -> None:
        if any(isinstance(put.row, OperationRow) and not (put.row.owner or put.row.outcome) for put in work):
            self._schedule_turn(_BUSY_S)

    def _count(self, transition: Transition) -> None:
        if transition not in ALLOWED:
            raise InvariantBroken("operations follow their tables", f"{transition} is in no table")
        self._world.transitions[transition] += 1

    def _before_commit(self) -> None:
        faults = self._world.faults
        self._world.commits += 1
        if faults.strikes("overtaken"):
            self._world.overtake(self)
        faults.kill("killed", self.die)
        if faults.strikes("refused"):
            raise Unavailable("the database refused the commit")

    def _after_commit(self) -> None:
        faults = self._world.faults
        faults.kill("killed", self.die)
        if faults.strikes("unheard"):
            raise Unavailable("the database did not report the result of the commit")

    def die(self) -> None:
        """Die at once and restart after a while."""
        if self.is_up:
            self.is_up = False
            self._world.events.schedule(
                self._world.chance.uniform(*_RESTART_S), "server back", self._restart, detail=self.name
            )

    def _restart(self) -> None:
        if not self.is_up:
            self.start()


class Servers(Environment):
    """An environment with one to three servers on its store."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._overtaking = 0
        self.is_single = self.chance.random() < 0.3
        self.offload_s = self.chance.choice((-1.0, 0.0, 20.0))  # the setting ``shelved_offload_time_s``
        count = 1 if self.is_single else self.chance.choice((2, 3))
        self.processes = [Process(self, number) for number in range(count)]

    def pick_server(self) -> Process | None:
        """Return a random running server; None: all are down."""
        running = [process for process in self.processes if process.is_up]
        return self.chance.choice(running) if running else None

    def overtake(self, process: Process) -> None:
        """Let another server take a turn between the read and the write of a server."""
        others = [each for each in self.processes if each.is_up and each is not process]
        if not others or self._overtaking:
            return
        self._overtaking += 1
        try:
            self.events.run(self.chance.choice(others).take_turn)
        finally:
            self._overtaking -= 1
