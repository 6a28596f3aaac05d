"""One simulation: servers on one database, hosts with agents, user requests, and faults."""

from collections import Counter
from collections.abc import Collection

import msgspec

from roost.conductor.operation.row_changes import make_due, replace_row
from roost.model.names import uuid_text
from roost.model.work.orders import Order
from roost.model.work.work_rows import MigrationRow, OperationRow, OrderRow, StatusRow
from roost.observe import log
from roost.placement.write_plan import Plan
from roost.simulator.cluster.environment.event_queue import InvariantBroken
from roost.simulator.cluster.environment.rare_faults import FOCUS_WEIGHT, HELD_SEEDS, PLAN_SEEDS, RESTORE_SEEDS, WAKE_S
from roost.simulator.cluster.environment.troubled_store import Backup
from roost.simulator.cluster.invariants import InvariantChecker
from roost.simulator.cluster.quiescence import check_at_rest, describe_unrest
from roost.simulator.cluster.user_requests import select_kinds, with_deletion
from roost.simulator.cluster.world import World

NO_UNEXPECTED_ERROR = "only injected errors occur"

FAULTS_S = 150.0
# After the last fault the simulation must come to rest within this time.
REST_S = 600.0
_CHECK_S = 2.0
_REQUEST_S, _DISTURB_S = (0.2, 4.0), 1.0
_CUT_S, _LOST_HOSTS = (2.0, 40.0), 0.15
_ABSENCE_S = (9.5, 13.0)  # of a host in the focus: until it counts as down, or a little longer
# Range of seconds: until the backup of a restore seed, and from the backup to its restore.
_BACKUP_S, _RESTORE_S = (20.0, 70.0), (5.0, 70.0)
_STALL_S, _LEAVING_SHARE = (1.0, 12.0), 0.8  # of conductors; of the hosts of an operation
_INJECTED = "was made to fail"  # text of the fake driver's injected errors
_GUEST_ERRORS = ("NotFound(", "Conflict(")  # of a guest that is missing or in another state


class SeedResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one seed."""

    seed: int
    events: int
    virtual_s: float
    digest: str  # of the whole trace
    kinds: dict[str, int]  # events by kind
    faults: dict[str, int]
    accepted: dict[str, int]  # accepted operations, by kind
    outcomes: dict[str, int]  # ended operations, by kind and outcome: done, failed, cancelled
    transitions: dict[str, int]  # of operations: kind, step, event, next step
    excuses: dict[str, int]  # permitted deviations at rest
    invariant: str = ""  # the broken invariant; empty: none
    problem: str = ""
    last: tuple[str, ...] = ()  # the last events before the violation


class Simulation:
    """One run of a world: a time with faults, then a time without.

    Args:
        seed: determines all random choices.
        kinds: of operations for users to request; empty: all.
    """

    def __init__(self, seed: int, *, kinds: Collection[str] = ()) -> None:
        self._request_kinds = select_kinds(kinds, is_planned=seed in PLAN_SEEDS)
        self.world = World(seed)
        self._events, self._chance, self._faults = self.world.events, self.world.chance, self.world.faults
        self.invariants = InvariantChecker(self.world)
        self._unexpected: dict[str, object] | None = None

    def run(self) -> SeedResult:
        """Run until faults have ended and all is at rest; return the result."""
        with log.redirect_events(self._record_fault):
            try:
                self._start()
                self._run_until(FAULTS_S)
                self._end_faults()
                self._wait_for_rest()
            except InvariantBroken as violation:
                return self._result(violation.invariant, violation.problem)
            except Exception as error:  # noqa: BLE001  # any error is reported with its seed
                self._events.note(repr(error))
                log.fault("simulation", error)
                return self._result(NO_UNEXPECTED_ERROR, str((self._unexpected or {}).get("traceback", error)))
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
        self._events.schedule(_DISTURB_S, "stroke", self._disturb_hosts)
        if self.world.seed in RESTORE_SEEDS or self.world.seed in HELD_SEEDS:
            self._events.schedule(self.world.rare.chance.uniform(*_BACKUP_S), "backup", self._back_up)
        if self.world.rare.is_on:
            self.world.rare.on_trouble, self.world.rare.on_stored = self._abandon, self._disturb_focus
            self.world.rare.on_begun = self._cut_off
            self._events.schedule(WAKE_S, "wake", self._disturb_operations)

    def _run_until(self, end_s: float) -> None:
        while self._events.elapsed_s < end_s:
            self._run_next()

    def _run_next(self) -> None:
        self._events.run_next()
        if self._unexpected is not None:
            raise InvariantBroken(NO_UNEXPECTED_ERROR, str(self._unexpected["traceback"]))
        self.invariants.check()

    def _wait_for_rest(self) -> None:
        """Wait until all is at rest, and check the final state."""
        end_s = self._events.elapsed_s + REST_S
        reason = "not checked yet"
        while self._events.elapsed_s < end_s:
            self._run_until(self._events.elapsed_s + _CHECK_S)
            reason = describe_unrest(self.world)
            if not reason:
                check_at_rest(self.world)
                return
        raise InvariantBroken("the simulation comes to rest after the last fault", reason)

    def _end_faults(self) -> None:
        """End all faults; some hosts stay lost for good."""
        self._events.note("calm")
        self._faults.end()
        for machine in self.world.machines:
            self.world.cut_until_s[machine.host] = 0.0
            if machine.process is None:
                machine.is_lost = self._chance.random() < _LOST_HOSTS
                self._events.schedule(self._chance.uniform(0, 5), "agent back", machine.start, detail=machine.host)

    def _back_up(self) -> None:
        """Take a backup, and restore it later."""
        backup = self.world.store.backup(now_s=self.world.clock.time_s)
        self._events.schedule(self.world.rare.chance.uniform(*_RESTORE_S), "restore", lambda: self._restore(backup))

    def _restore(self, backup: Backup) -> None:
        self.world.restore(backup)
        self.invariants.forget()

    def _send_request(self) -> None:
        """Send a random user request, and schedule the next."""
        if self._faults.is_over:
            return
        focus = self.world.rare.focus
        weights = [
            each.weight * (FOCUS_WEIGHT if focus is not None and each.kind in focus.requests else 1)
            for each in self._request_kinds
        ]
        (kind,) = self._chance.choices(self._request_kinds, weights=weights)
        action = kind.make(self.world, kind.kind)
        if action is not None:
            if self.world.rare.strikes("regretted"):
                action = with_deletion(self.world, action)
            self.world.send_request(
                f"ask {kind.kind}", action, on_accepted=lambda: self.world.accepted_counts.update([kind.kind])
            )
        self._events.schedule(self._chance.uniform(*_REQUEST_S), "ask", self._send_request)

    def _disturb_hosts(self) -> None:
        """Partition hosts, and let operators disable and enable them."""
        if self._faults.is_over:
            return
        for machine in self.world.machines:
            if self._faults.strikes("partitioned", per=_DISTURB_S):
                self.world.cut_until_s[machine.host] = self.world.clock.time_s + self._chance.uniform(*_CUT_S)
                self._events.note(f"{machine.host} is cut off")
            if self._faults.strikes("disabled", per=_DISTURB_S):
                self.world.disable(machine.host, is_disabled=self._chance.random() < 0.5)
        self._events.schedule(_DISTURB_S, "stroke", self._disturb_hosts)

    def _disturb_operations(self) -> None:
        """Make a waiting operation due early, or let the hosts of one sign off; schedule the next disturbance."""
        if self._faults.is_over:
            return
        rows = self.world.store.tables.work[OperationRow].rows.values()
        waiting = sorted((row for row in rows if not (row.outcome or row.owner)), key=lambda row: row.id)
        rare = self.world.rare
        if waiting and rare.strikes("woken"):
            row = rare.chance.choice(waiting)
            plan = Plan(answer=row, work=(replace_row(make_due(row, now_s=self.world.clock.time_s)),))
            self.world.send_request("wake", lambda process: process.run(lambda _current: plan))
        if waiting and rare.strikes("deserted"):
            self._desert(rare.chance.choice(waiting))
        if rare.strikes("bereft"):
            self._lose_guest()
        self._events.schedule(WAKE_S, "wake", self._disturb_operations)

    def _lose_guest(self) -> None:
        """Let a host lose the guest of an instance without an operation; its agent ends."""
        machines = {machine.host: machine for machine in self.world.machines}
        choices = [
            (machines[status.host], uuid_text(status.uuid))
            for status in self.world.statuses()
            if status.status in {"ACTIVE", "SHUTOFF"}
            and not status.operation_id
            and uuid_text(status.uuid) in self.world.shelf.record_of(status.host).guests
        ]
        if choices:
            machine, uuid = self.world.rare.chance.choice(choices)
            self._events.note(f"{machine.host} loses {uuid}")
            self.world.shelf.lose(machine.host, uuid)
            self.world.lost_guests.add(uuid)
            machine.die()

    def _abandon(self, order: Order, host: str) -> None:
        """Let the other hosts of an operation sign off, if the fault strikes."""
        if not self.world.rare.strikes("abandoned"):
            return
        rows = self.world.store.tables.work[OperationRow].rows.values()
        for row in rows:
            if uuid_text(row.uuid) == order.operation:
                self._desert(row, but=host)

    def _cut_off(self, order: Order, host: str) -> None:
        """Partition the host of an order, if the focus demands it and the fault strikes."""
        rare, action = self.world.rare, order.act.__struct_config__.tag
        is_in_focus = rare.focus is not None and rare.focus.is_cut_off and action == rare.focus.kind
        if is_in_focus and rare.strikes("cut off"):
            self.world.cut_until_s[host] = self.world.clock.time_s + rare.chance.uniform(*_ABSENCE_S)

    def _disturb_focus(self) -> None:
        """Stall the conductors when a host has answered an operation in the focus, and let its hosts leave."""
        rare, now_s, work = self.world.rare, self.world.clock.time_s, self.world.store.tables.work
        if rare.focus is None or self._faults.is_over or now_s < rare.stalled_until_s:
            return
        for row in work[OperationRow].rows.values():
            if row.kind == rare.focus.kind and row.step in rare.focus.steps and not row.outcome:
                orders = [each for each in work[OrderRow].rows.values() if each.operation_id == row.id]
                is_answered = not orders or max(orders, key=lambda order: order.id).state == "answered"
                if rare.strikes("answered" if is_answered else "focused"):
                    rare.stalled_until_s = now_s + rare.chance.uniform(*_STALL_S)
                    self._desert(row)
                return

    def _desert(self, operation: OperationRow, *, but: str = "") -> None:
        """Let some hosts of an operation sign off.

        Args:
            but: a host that stays.
        """
        chance = self.world.rare.chance
        work = self.world.store.tables.work
        hosts = {order.host for order in work[OrderRow].rows.values() if order.operation_id == operation.id}
        if operation.instance_uuid is not None:
            hosts.add(work[StatusRow].rows[operation.instance_uuid].host.lower())
        for move in work[MigrationRow].rows.values():
            if move.operation_id == operation.id:
                hosts |= {move.source_host.lower(), move.target_host.lower()}
        for machine in self.world.machines:
            if machine.process is None or machine.host not in hosts or machine.host == but:
                continue
            if chance.random() < _LEAVING_SHARE:
                machine.process.leave()

    def _record_fault(self, fields: dict[str, object]) -> None:
        """Remember a logged fault, unless it was injected or the user knows of it."""
        error = str(fields.get("error", ""))
        if fields["event"] == "fault" and _INJECTED not in error and not self._is_known_to_user(error):
            self._unexpected = self._unexpected or fields

    def _is_known_to_user(self, error: str) -> bool:
        """Return whether an error concerns a guest that is lost or differs from a backup, or a fault or a deletion."""
        known = self.world.lost_guests | self.world.restored.differing
        return error.startswith(_GUEST_ERRORS) and any(
            (uuid := uuid_text(status.uuid)) in error and (status.fault or status.status == "DELETED" or uuid in known)
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
