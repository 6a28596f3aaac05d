"""One simulation: servers on one database, hosts with agents, people who ask, and all that goes wrong meanwhile."""

from collections import Counter
from collections.abc import Collection

import msgspec

from roost.model.group import GROUP_POLICIES
from roost.model.names import uuid_text
from roost.model.work.work_rows import OperationRow
from roost.observe import log
from roost.simulator.cluster.environment.event_queue import Broken
from roost.simulator.cluster.invariants import Invariants
from roost.simulator.cluster.quiescence import at_rest, unrest
from roost.simulator.cluster.user_requests import asks_there_are
from roost.simulator.cluster.world import World

TROUBLE_S = 150.0
# Within so long all comes to rest when nothing goes wrong any more.
REST_S = 600.0
_LOOK_S = 2.0
_ASK_S, _STROKE_S = (0.2, 4.0), 1.0
_CUT_S, _LOST_HOSTS = (2.0, 40.0), 0.15
_MEANT = "was to go wrong"  # as the fake driver says
_OF_GUESTS = ("NotFound(", "Conflict(")  # that are not there any more, or run, or do not
_POLICIES = sorted(GROUP_POLICIES)
_RACKS = ("", "left", "left", "right", "right")


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one seed."""

    seed: int
    events: int
    virtual_s: float
    digest: str  # of all that happened
    kinds: dict[str, int]  # events by kind
    troubles: dict[str, int]
    asked: dict[str, int]  # operations that were accepted, by kind
    ended: dict[str, int]  # operations that ended, by kind and end: done, failed, cancelled
    transitions: dict[str, int]  # of operations: kind, step, event, next step
    excused: dict[str, int]  # what was not as it should be when all had come to rest, and may be so
    invariant: str = ""  # that was broken; empty: none
    problem: str = ""
    last: tuple[str, ...] = ()  # the last events before that


class Simulation:
    """One run of a world: trouble, then rest.

    Args:
        seed: determines all random choices.
        kinds: of operations that users request; none: all.
    """

    def __init__(self, seed: int, *, kinds: Collection[str] = ()) -> None:
        self._asks = asks_there_are(kinds)
        self.world = World(seed)
        self._events, self._chance, self._trouble = self.world.happenings, self.world.chance, self.world.trouble
        self.invariants = Invariants(self.world)
        self._fault: dict[str, object] | None = None

    def run(self) -> Course:
        """Let trouble come and end, and all come to rest; return what came of it."""
        with log.told_to(self._hear):
            try:
                self._begin()
                self._until(TROUBLE_S)
                self._calm()
                self._rest()
            except Broken as broken:
                return self._course(broken.invariant, broken.problem)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is told with the seed
                self._events.note(repr(error))
                log.fault("simulation", error)
                return self._course("nothing fails that nobody meant", str((self._fault or {}).get("traceback", error)))
        return self._course()

    def _begin(self) -> None:
        first = self.world.processes[0]
        for process in self.world.processes:
            process.start()
        fleet = self.world.fleet()
        shares, self._trouble.shares = self._trouble.shares, type(self._trouble.shares)()
        first.roost.placement.create_providers(fleet.providers)
        first.roost.fleet.register_hosts(fleet.hosts)
        first.roost.fleet.create_groups(fleet.groups)
        self._trouble.shares = shares
        for machine in self.world.machines:
            self._events.after(self._chance.uniform(0, 3), "agent begins", machine.start, told=machine.host)
        self._events.after(1.0, "ask", self._ask)
        self._events.after(_STROKE_S, "stroke", self._stroke)

    def _until(self, end_s: float) -> None:
        while self._events.elapsed_s < end_s:
            self._next()

    def _next(self) -> None:
        self._events.next()
        if self._fault is not None:
            raise Broken("nothing fails that nobody meant", str(self._fault["traceback"]))
        self.invariants.check()

    def _rest(self) -> None:
        """Wait until all has come to rest, and look at what is left."""
        end_s = self._events.elapsed_s + REST_S
        reason = "nobody looked"
        while self._events.elapsed_s < end_s:
            self._until(self._events.elapsed_s + _LOOK_S)
            reason = unrest(self.world)
            if not reason:
                at_rest(self.world)
                return
        raise Broken("all comes to rest when nothing goes wrong any more", reason)

    def _calm(self) -> None:
        """Let nothing go wrong any more; some hosts stay away for good."""
        self._events.note("calm")
        self._trouble.end()
        for machine in self.world.machines:
            self.world.cut_until_s[machine.host] = 0.0
            if machine.life is None:
                machine.is_lost = self._chance.random() < _LOST_HOSTS
                self._events.after(self._chance.uniform(0, 5), "agent back", machine.start, told=machine.host)

    def _ask(self) -> None:
        """Let somebody ask for something."""
        if self._trouble.is_over:
            return
        (ask,) = self._chance.choices(self._asks, weights=[each.weight for each in self._asks])
        deed = ask.make(self.world, ask.kind)
        if deed is not None:
            self.world.ask(f"ask {ask.kind}", deed, accepted=lambda: self.world.asked.update([ask.kind]))
        self._events.after(self._chance.uniform(*_ASK_S), "ask", self._ask)

    def _stroke(self) -> None:
        """Cut hosts off, and let operators disable and enable them."""
        if self._trouble.is_over:
            return
        for machine in self.world.machines:
            if self._trouble.strikes("partitioned", per=_STROKE_S):
                self.world.cut_until_s[machine.host] = self.world.clock.time_s + self._chance.uniform(*_CUT_S)
                self._events.note(f"{machine.host} is cut off")
            if self._trouble.strikes("disabled", per=_STROKE_S):
                self.world.disable(machine.host, is_disabled=self._chance.random() < 0.5)
        self._events.after(_STROKE_S, "stroke", self._stroke)

    def _hear(self, fields: dict[str, object]) -> None:
        """Hear what the log is told: an error that nobody meant is no good."""
        error = str(fields.get("error", ""))
        if fields["event"] == "fault" and _MEANT not in error and not self._is_told(error):
            self._fault = self._fault or fields

    def _is_told(self, error: str) -> bool:
        """Say whether a driver refuses what it cannot do with a guest of which a fault tells that it may be so."""
        return error.startswith(_OF_GUESTS) and any(
            uuid_text(status.uuid) in error and (status.fault or status.status == "DELETED")
            for status in self.world.statuses()
        )

    def _course(self, invariant: str = "", problem: str = "") -> Course:
        ended = Counter(f"{row.kind} {_end(row)}" for row in self.invariants.operations() if row.outcome)
        return Course(
            seed=self.world.seed,
            events=self._events.number,
            virtual_s=self._events.elapsed_s,
            digest=self._events.digest,
            kinds=dict(self._events.counts),
            troubles=dict(self._trouble.counts),
            asked=dict(self.world.asked),
            ended=dict(ended),
            transitions={" ".join(each): count for each, count in self.world.transitions.items()},
            excused=dict(self.world.excused),
            invariant=invariant,
            problem=problem,
            last=self._events.last if invariant else (),
        )


def _end(operation: OperationRow) -> str:
    return "cancelled" if operation.is_cancelled and operation.outcome == "failed" else operation.outcome
