"""One simulation: servers on one database, hosts with agents, people who ask, and all that goes wrong meanwhile."""

from collections import Counter
from collections.abc import Collection

import msgspec

from roost.model.names import uuid_text
from roost.model.work.work_rows import OperationRow
from roost.observe import log
from roost.simulator.cluster.environment.event_queue import InvariantBroken
from roost.simulator.cluster.invariants import InvariantChecker
from roost.simulator.cluster.quiescence import check_at_rest, describe_unrest
from roost.simulator.cluster.user_requests import select_kinds
from roost.simulator.cluster.world import World

FAULTS_S = 150.0
# Within so long all comes to rest when nothing goes wrong any more.
REST_S = 600.0
_CHECK_S = 2.0
_ASK_S, _STROKE_S = (0.2, 4.0), 1.0
_CUT_S, _LOST_HOSTS = (2.0, 40.0), 0.15
_INJECTED = "was to go wrong"  # as the fake driver says
_GUEST_ERRORS = ("NotFound(", "Conflict(")  # that are not there any more, or run, or do not


class SeedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one seed."""

    seed: int
    events: int
    virtual_s: float
    digest: str  # of all that happened
    kinds: dict[str, int]  # events by kind
    faults: dict[str, int]
    accepted: dict[str, int]  # operations that were accepted, by kind
    outcomes: dict[str, int]  # operations that ended, by kind and end: done, failed, cancelled
    transitions: dict[str, int]  # of operations: kind, step, event, next step
    excuses: dict[str, int]  # what was not as it should be when all had come to rest, and may be so
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
        self._request_kinds = select_kinds(kinds)
        self.world = World(seed)
        self._events, self._chance, self._faults = self.world.events, self.world.chance, self.world.faults
        self.invariants = InvariantChecker(self.world)
        self._unexpected: dict[str, object] | None = None

    def run(self) -> SeedResult:
        """Let trouble come and end, and all come to rest; return what came of it."""
        with log.redirect_events(self._record_fault):
            try:
                self._start()
                self._run_until(FAULTS_S)
                self._end_faults()
                self._wait_for_rest()
            except InvariantBroken as violation:
                return self._result(violation.invariant, violation.problem)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is told with the seed
                self._events.note(repr(error))
                log.fault("simulation", error)
                return self._result(
                    "nothing fails that nobody meant", str((self._unexpected or {}).get("traceback", error))
                )
        return self._result()

    def _start(self) -> None:
        first = self.world.processes[0]
        for process in self.world.processes:
            process.start()
        fleet = self.world.fleet()
        shares, self._faults.rates = self._faults.rates, type(self._faults.rates)()
        first.roost.placement.create_providers(fleet.providers)
        first.roost.fleet.register_hosts(fleet.hosts)
        first.roost.fleet.create_groups(fleet.groups)
        self._faults.rates = shares
        for machine in self.world.machines:
            self._events.schedule(self._chance.uniform(0, 3), "agent begins", machine.start, detail=machine.host)
        self._events.schedule(1.0, "ask", self._send_request)
        self._events.schedule(_STROKE_S, "stroke", self._disturb_hosts)

    def _run_until(self, end_s: float) -> None:
        while self._events.elapsed_s < end_s:
            self._run_next()

    def _run_next(self) -> None:
        self._events.run_next()
        if self._unexpected is not None:
            raise InvariantBroken("nothing fails that nobody meant", str(self._unexpected["traceback"]))
        self.invariants.check()

    def _wait_for_rest(self) -> None:
        """Wait until all has come to rest, and look at what is left."""
        end_s = self._events.elapsed_s + REST_S
        reason = "nobody looked"
        while self._events.elapsed_s < end_s:
            self._run_until(self._events.elapsed_s + _CHECK_S)
            reason = describe_unrest(self.world)
            if not reason:
                check_at_rest(self.world)
                return
        raise InvariantBroken("all comes to rest when nothing goes wrong any more", reason)

    def _end_faults(self) -> None:
        """Let nothing go wrong any more; some hosts stay away for good."""
        self._events.note("calm")
        self._faults.end()
        for machine in self.world.machines:
            self.world.cut_until_s[machine.host] = 0.0
            if machine.process is None:
                machine.is_lost = self._chance.random() < _LOST_HOSTS
                self._events.schedule(self._chance.uniform(0, 5), "agent back", machine.start, detail=machine.host)

    def _send_request(self) -> None:
        """Let somebody ask for something."""
        if self._faults.is_over:
            return
        (kind,) = self._chance.choices(self._request_kinds, weights=[each.weight for each in self._request_kinds])
        action = kind.make(self.world, kind.kind)
        if action is not None:
            self.world.send_request(
                f"ask {kind.kind}", action, on_accepted=lambda: self.world.accepted_counts.update([kind.kind])
            )
        self._events.schedule(self._chance.uniform(*_ASK_S), "ask", self._send_request)

    def _disturb_hosts(self) -> None:
        """Cut hosts off, and let operators disable and enable them."""
        if self._faults.is_over:
            return
        for machine in self.world.machines:
            if self._faults.strikes("partitioned", per=_STROKE_S):
                self.world.cut_until_s[machine.host] = self.world.clock.time_s + self._chance.uniform(*_CUT_S)
                self._events.note(f"{machine.host} is cut off")
            if self._faults.strikes("disabled", per=_STROKE_S):
                self.world.disable(machine.host, is_disabled=self._chance.random() < 0.5)
        self._events.schedule(_STROKE_S, "stroke", self._disturb_hosts)

    def _record_fault(self, fields: dict[str, object]) -> None:
        """Hear what the log is told: an error that nobody meant is no good."""
        error = str(fields.get("error", ""))
        if fields["event"] == "fault" and _INJECTED not in error and not self._is_known_to_user(error):
            self._unexpected = self._unexpected or fields

    def _is_known_to_user(self, error: str) -> bool:
        """Say whether a driver refuses what it cannot do with a guest of which a fault tells that it may be so."""
        return error.startswith(_GUEST_ERRORS) and any(
            uuid_text(status.uuid) in error and (status.fault or status.status == "DELETED")
            for status in self.world.statuses()
        )

    def _result(self, invariant: str = "", problem: str = "") -> SeedResult:
        outcomes = Counter(
            f"{row.kind} {_describe_outcome(row)}" for row in self.invariants.operations() if row.outcome
        )
        return SeedResult(
            seed=self.world.seed,
            events=self._events.number,
            virtual_s=self._events.elapsed_s,
            digest=self._events.digest,
            kinds=dict(self._events.counts),
            faults=dict(self._faults.counts),
            accepted=dict(self.world.accepted_counts),
            outcomes=dict(outcomes),
            transitions={" ".join(each): count for each, count in self.world.transitions.items()},
            excuses=dict(self.world.excuse_counts),
            invariant=invariant,
            problem=problem,
            last=self._events.last if invariant else (),
        )


def _describe_outcome(operation: OperationRow) -> str:
    return "cancelled" if operation.is_cancelled and operation.outcome == "failed" else operation.outcome
