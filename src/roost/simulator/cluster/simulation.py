"""One simulation: servers on one database, hosts with agents, people who ask, and all that goes wrong meanwhile."""

import random
from collections import Counter
from collections.abc import Callable, Collection
from typing import Literal

import msgspec

from roost.errors import Conflict, NotFound, RoostError
from roost.fleet.host_writes import ServiceChange, changed_facts, rows_of_service, writes_of_facts
from roost.model.fleet import Fleet
from roost.model.group import GROUP_POLICIES, ServerGroup
from roost.model.host import HostFacts, HostSpec
from roost.model.names import uuid_text
from roost.model.provider import Inventory, ProviderSpec
from roost.model.work.work_rows import AgentRow, OperationRow, StatusRow
from roost.observe import log
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.simulator.cluster.event_queue import Broken, Happenings
from roost.simulator.cluster.invariants import Invariants
from roost.simulator.cluster.machines import Books, Machine
from roost.simulator.cluster.network import Call
from roost.simulator.cluster.processes import Process, TroubledStore
from roost.simulator.cluster.quiescence import at_rest, unrest
from roost.simulator.cluster.trouble import Trouble
from roost.simulator.cluster.user_requests import asks_there_are
from roost.simulator.seeded_random import SeededRandom

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
    excused: dict[str, int]  # what was not as it should be when all had come to rest, and may be so
    invariant: str = ""  # that was broken; empty: none
    problem: str = ""
    last: tuple[str, ...] = ()  # the last events before that


class World:
    """All of one simulation.

    Args:
        seed: all of chance comes of it.
        kinds: of operations that people ask for; none: all that there are.
    """

    def __init__(self, seed: int, *, kinds: Collection[str] = ()) -> None:
        self.seed = seed
        self._asks = asks_there_are(kinds)
        self.chance = random.Random(seed)
        self.identities = SeededRandom(seed)
        self.happenings = Happenings()
        self.clock = self.happenings.clock
        self.trouble = Trouble(random.Random(seed + 1))
        self.books = Books()
        self.store = TroubledStore()
        self.asked: Counter[str] = Counter()
        self.excused: Counter[str] = Counter()
        self.commits = 0  # and tries of some
        self._overtaking = 0
        self._fault: dict[str, object] | None = None
        self.is_single = self.chance.random() < 0.3
        self.offload_s = self.chance.choice((-1.0, 0.0, 20.0))  # as the setting says
        count = 1 if self.is_single else self.chance.choice((2, 3))
        self.processes = [Process(self, number) for number in range(count)]
        self.groups = [self.new_uuid() for _ in _POLICIES]
        self.machines = [
            Machine(self, f"h{number}", self.new_uuid(), rack=self.chance.choice(_RACKS))
            for number in range(self.chance.randint(3, 6))
        ]
        self.invariants = Invariants(self)

    # --- what its parts use ---

    def new_uuid(self) -> str:
        """Return a fresh uuid."""
        return uuid_text(self.identities.uuids(1)[0])

    def server(self) -> Process | None:
        """Return a server that answers; None: there is none now."""
        found = [process for process in self.processes if process.is_up]
        return self.chance.choice(found) if found else None

    def is_cut(self, host: str) -> bool:
        """Say whether no message of a host comes through now."""
        return any(each.host == host and each.cut_until_s > self.clock.time_s for each in self.machines)

    def overtake(self, process: Process) -> None:
        """Let another server do something between what one has read and what it writes."""
        others = [each for each in self.processes if each.is_up and each is not process]
        if not others or self._overtaking:
            return
        self._overtaking += 1
        try:
            self.happenings.inside(self.chance.choice(others).work)
        finally:
            self._overtaking -= 1

    def enable_later(self, host: str, *, after_s: float) -> None:
        """Let an operator enable a host after a while."""
        self.happenings.after(after_s, "enable later", lambda: self._disable(host, is_disabled=False), told=host)

    def ask_later(self, after_s: float, what: str, deed: Callable[[Process], object]) -> None:
        """Let somebody ask for something after a while."""

        def ask() -> None:
            Call(self, "", what, deed=deed, told=lambda _answer: None, failed=self._refused, is_wanted=lambda: True)

        self.happenings.after(after_s, "ask later", ask, told=what)

    def is_down(self, host: str) -> bool:
        """Say whether the agent of a host was given up, or has left."""
        agent = self.store.shelves.work[AgentRow].get(host)
        return agent is not None and agent.state == "gone"

    def excuse(self, what: str) -> Literal[True]:
        """Count an excuse that was needed; it is one."""
        self.excused[what] += 1
        return True

    def statuses(self) -> list[StatusRow]:
        """Return what instances there are, in the order in which they were asked for."""
        rows = self.store.shelves.work[StatusRow].rows.values()
        return sorted(rows, key=lambda row: row.id)

    def document(self, number: int) -> bytes:
        """Return a stored document."""
        found = self.store.document(number)
        assert found is not None, "documents stay"
        return found

    # --- one course ---

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
                self.happenings.note(repr(error))
                log.fault("simulation", error)
                return self._course("nothing fails that nobody meant", str((self._fault or {}).get("traceback", error)))
        return self._course()

    def _begin(self) -> None:
        first = self.processes[0]
        for process in self.processes:
            process.start()
        fleet = self._fleet()
        shares, self.trouble.shares = self.trouble.shares, type(self.trouble.shares)()
        first.roost.placement.create_providers(fleet.providers)
        first.roost.fleet.register_hosts(fleet.hosts)
        first.roost.fleet.create_groups(fleet.groups)
        self.trouble.shares = shares
        for machine in self.machines:
            self.happenings.after(self.chance.uniform(0, 3), "agent begins", machine.start, told=machine.host)
        self.happenings.after(1.0, "ask", self._ask)
        self.happenings.after(_STROKE_S, "stroke", self._stroke)

    def _fleet(self) -> Fleet:
        providers = [
            ProviderSpec(
                uuid=each.uuid,
                name=each.host,
                inventories={
                    "VCPU": Inventory(total=self.chance.randint(3, 9)),
                    "MEMORY_MB": Inventory(total=100 - number),
                },
            )
            for number, each in enumerate(self.machines)
        ]
        hosts = [
            HostSpec(provider_uuid=each.uuid, host=each.host, node=each.host, facts=HostFacts(rack=each.rack))
            for each in self.machines
        ]
        groups = [
            ServerGroup(uuid=uuid, name=policy, policy=policy, max_server_per_host=self.chance.choice((1, 1, 2)))
            for uuid, policy in zip(self.groups, _POLICIES, strict=True)
        ]
        return Fleet(providers=providers, hosts=hosts, groups=groups)

    def _until(self, end_s: float) -> None:
        while self.happenings.elapsed_s < end_s:
            self._next()

    def _next(self) -> None:
        self.happenings.next()
        if self._fault is not None:
            raise Broken("nothing fails that nobody meant", str(self._fault["traceback"]))
        self.invariants.check()

    def _rest(self) -> None:
        """Wait until all has come to rest, and look at what is left."""
        end_s = self.happenings.elapsed_s + REST_S
        reason = "nobody looked"
        while self.happenings.elapsed_s < end_s:
            self._until(self.happenings.elapsed_s + _LOOK_S)
            reason = unrest(self)
            if not reason:
                at_rest(self)
                return
        raise Broken("all comes to rest when nothing goes wrong any more", reason)

    def _calm(self) -> None:
        """Let nothing go wrong any more; some hosts stay away for good."""
        self.happenings.note("calm")
        self.trouble.end()
        for machine in self.machines:
            machine.cut_until_s = 0.0
            if machine.life is None:
                machine.is_lost = self.chance.random() < _LOST_HOSTS
                self.happenings.after(self.chance.uniform(0, 5), "agent back", machine.start, told=machine.host)

    # --- what happens again and again ---

    def _ask(self) -> None:
        """Let somebody ask for something."""
        if self.trouble.is_over:
            return
        (ask,) = self.chance.choices(self._asks, weights=[each.weight for each in self._asks])
        deed = ask.make(self, ask.kind)
        if deed is not None:
            Call(
                self,
                "",
                f"ask {ask.kind}",
                deed=deed,
                told=lambda _answer: self.asked.update([ask.kind]),
                failed=self._refused,
                is_wanted=lambda: True,
            )
        self.happenings.after(self.chance.uniform(*_ASK_S), "ask", self._ask)

    def _refused(self, error: RoostError) -> None:
        if not isinstance(error, (Conflict, NotFound)):
            raise error
        self.happenings.note(f"refused: {error}")

    def _stroke(self) -> None:
        """Cut hosts off, and let operators disable and enable them."""
        if self.trouble.is_over:
            return
        for machine in self.machines:
            if self.trouble.strikes("partitioned", per=_STROKE_S):
                machine.cut_until_s = self.clock.time_s + self.chance.uniform(*_CUT_S)
                self.happenings.note(f"{machine.host} is cut off")
            if self.trouble.strikes("disabled", per=_STROKE_S):
                self._disable(machine.host, is_disabled=self.chance.random() < 0.5)
        self.happenings.after(_STROKE_S, "stroke", self._stroke)

    def _disable(self, host: str, *, is_disabled: bool) -> None:
        def task(current: Current) -> Plan[None] | None:
            rows = rows_of_service(current.state, host)
            facts = changed_facts(current.state, rows, ServiceChange(is_disabled=is_disabled))
            return Plan(answer=None, writes=writes_of_facts(current.state, rows, facts))

        Call(
            self,
            "",
            "disable" if is_disabled else "enable",
            deed=lambda process: process.run(task),
            told=lambda _answer: None,
            failed=self._refused,
            is_wanted=lambda: True,
        )

    # --- what came of it ---

    def _hear(self, fields: dict[str, object]) -> None:
        """Hear what the log is told: an error that nobody meant is no good."""
        error = str(fields.get("error", ""))
        if fields["event"] == "fault" and _MEANT not in error and not self._is_told(error):
            self._fault = self._fault or fields

    def _is_told(self, error: str) -> bool:
        """Say whether a driver refuses what it cannot do with a guest of which a fault tells that it may be so."""
        return error.startswith(_OF_GUESTS) and any(
            uuid_text(status.uuid) in error and (status.fault or status.status == "DELETED")
            for status in self.statuses()
        )

    def _course(self, invariant: str = "", problem: str = "") -> Course:
        ended = Counter(f"{row.kind} {_end(row)}" for row in self.invariants.operations() if row.outcome)
        return Course(
            seed=self.seed,
            events=self.happenings.number,
            virtual_s=self.happenings.elapsed_s,
            digest=self.happenings.digest,
            kinds=dict(self.happenings.counts),
            troubles=dict(self.trouble.counts),
            asked=dict(self.asked),
            ended=dict(ended),
            excused=dict(self.excused),
            invariant=invariant,
            problem=problem,
            last=self.happenings.last if invariant else (),
        )


def _end(operation: OperationRow) -> str:
    return "cancelled" if operation.is_cancelled and operation.outcome == "failed" else operation.outcome
