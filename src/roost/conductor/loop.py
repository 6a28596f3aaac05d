"""The loop of a conductor: take the due operations, find the next step of each, and commit it.

Several conductors may share a database. A conductor takes an operation, and owns it for a limited time. A step is
committed only if the operation is unchanged. A conductor that was too slow, or was believed dead, commits nothing.
Conductors keep no other state, so any of them can continue from the last committed step.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import msgspec

from roost.conductor.builds.build_failures import plan_count
from roost.conductor.operation.events import Transition
from roost.conductor.operation.row_changes import make_due, next_version, replace_row
from roost.conductor.operation.step import CHOOSE, Choose, Commit, Desk, Step, Terms, View
from roost.conductor.operation.step_counts import count_step
from roost.conductor.operation.story import line
from roost.conductor.steps import table_of
from roost.conductor.views import views_of
from roost.errors import Conflict, RoostError, StoreBroken, Unavailable
from roost.model.devices.pci import PciRequest
from roost.model.evidence.decision import Decision, Pick
from roost.model.request import Request
from roost.model.work.work_rows import ChangeRow, OperationRow
from roost.observe import log, work_metrics
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.job import Task
from roost.placement.write_plan import Act, Plan, Result
from roost.ports import WorkReader

# Operations in one turn; they share commits.
_OPERATIONS_MAX = 64
# Seconds between scans for operations in cells without hosts, by a conductor of all cells.
_FULL_SCAN_S = 10.0
# Attempts per turn at one step: its commit may be refused although the operation itself is unchanged.
_TRIES = 3
# Seconds until the next attempt, after all attempts of a turn.
_PAUSE_S = 1.0

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorHooks:
    """Functions of the product for a conductor. The first two run in the deciding thread."""

    decision: Callable[[str], Decision]  # loads a stored decision; raises NotFound
    devices: Callable[[Request], tuple[PciRequest, ...]]  # the PCI requests of a request
    terms: Callable[[], Terms]  # from the current settings
    note: Callable[[Transition], object] = lambda _transition: None  # called after each committed step


class Conductor:
    """Carries out the operations of some cells.

    Args:
        name: unique among the conductors of the database.
        cells: their names; None: all cells. The empty name is for operations without a cell, such as new builds.
        serving: the owner of the columns and commits.
        reader: of operations and statuses; no other thread uses it during a turn.
    """

    def __init__(
        self, name: str, *, cells: Sequence[str] | None, serving: Serving, reader: WorkReader, product: ConductorHooks
    ) -> None:
        self._name = name
        self._cells = cells
        self._serving = serving
        self._reader = reader
        self._product = product
        self._full_scan_at_s = 0.0

    def turn(self) -> int:
        """Take the due operations, advance each until it waits or ends, and return their number.

        Raises:
            Unavailable: the database cannot be read.
        """
        terms = self._product.terms()
        now_s = self._reader.now_s()
        due = self._due(now_s)
        open_now = taken = self._take(due, until_s=now_s + terms.owner_s)
        for row in taken:
            work_metrics.STEP_LAG.observe(max(0.0, now_s - row.due_at_s))
        tries: Counter[int] = Counter()
        while open_now:
            open_now = self._advance(self._views(open_now, terms=terms), tries=tries)
        return len(taken)

    def take_over(self) -> None:
        """Make the operations of dead conductors due. Call it only if no other process uses the database.

        Raises:
            Unavailable: the database cannot be read.
        """
        last = 0
        while rows := self._reader.operations(after_id=last, limit=_OPERATIONS_MAX, is_open=True):
            last, now_s = rows[-1].id, self._reader.now_s()
            due = [make_due(row, now_s=now_s) for row in rows if row.owner]
            for outcome in [self._submit(_always(Plan(answer=row, work=(replace_row(row),)))) for row in due]:
                _outcome(outcome)

    def _due(self, now_s: float) -> list[OperationRow]:
        if self._cells is not None:
            return self._reader.due_operations(self._cells, now_s=now_s, limit=_OPERATIONS_MAX) if self._cells else []
        if now_s >= self._full_scan_at_s:
            # An instance may belong to a cell without hosts. This query takes longer.
            self._full_scan_at_s = now_s + _FULL_SCAN_S
            return self._reader.due_operations(None, now_s=now_s, limit=_OPERATIONS_MAX)
        cells = self._serving.run(lambda current: sorted({"", *current.state.hosts.cells}))
        return self._reader.due_operations(cells, now_s=now_s, limit=_OPERATIONS_MAX)

    def _take(self, due: Sequence[OperationRow], *, until_s: float) -> list[OperationRow]:
        """Take operations, each in its own commit; return those not lost to other conductors."""
        rows = [next_version(row, owner=self._name, owned_until_s=until_s) for row in due]
        outcomes = [self._submit(_always(Plan(answer=row, work=(replace_row(row),)))) for row in rows]
        results = [_outcome(outcome)[0] for outcome in outcomes]
        return [row for row in results if row is not None]

    def _views(self, rows: Sequence[OperationRow], *, terms: Terms) -> list[View]:
        """Read the views of operations; set aside undecodable ones."""
        try:
            return views_of(rows, reader=self._reader, terms=terms)
        except StoreBroken:  # Read each view on its own, to find the undecodable row.
            return [view for row in rows for view in self._read_view(row, terms=terms)]

    def _read_view(self, row: OperationRow, *, terms: Terms) -> list[View]:
        try:
            return views_of([row], reader=self._reader, terms=terms)
        except StoreBroken as error:
            self._set_aside(row, error, now_s=self._reader.now_s(), terms=terms)
            return []

    def _advance(self, views: Sequence[View], *, tries: Counter[int]) -> list[OperationRow]:
        """Take the next step of each operation; return those that continue at once.

        Args:
            tries: the number of refused steps in this turn, by operation.
        """
        outcomes: list[Future[Step]] = [self._submit(self._task(view)) for view in views]
        results = [self._step_of(view, outcome) for view, outcome in zip(views, outcomes, strict=True)]
        done = [step for step, _ in results if step is not None]
        for step in done:
            if step.transition is not None:
                self._product.note(step.transition)
            count_step(step)
        if done:
            self._count([each for step in done if isinstance(step, Commit) for each in step.builds], views[0].terms)
        refused = [view for view, (_, error) in zip(views, results, strict=True) if isinstance(error, Conflict)]
        continuing = [step.operation for step in done if step.operation.owner == self._name]
        return continuing + [view.operation for view in refused if self._can_retry(view, tries)]

    def _can_retry(self, view: View, tries: Counter[int]) -> bool:
        """Return whether to retry a refused step at once: its operation is unchanged, and so still owned."""
        row = view.operation
        stored = self._reader.operation(row.id)
        if stored is None or stored.version != row.version:
            return False
        tries[row.id] += 1
        if tries[row.id] < _TRIES:
            return True
        self._postpone(row, until_s=view.now_s + _PAUSE_S)
        return False

    def _task(self, view: View) -> Task[Step]:
        """Return the task to find the next step from the current columns, and to commit it."""
        table = table_of(view.operation)

        def task(current: Current) -> Plan[Step] | Act[Step]:
            step = table.next_step(view, self._desk(current))
            return _act(step) if isinstance(step, Choose) else _plan(step)

        return task

    def _desk(self, current: Current) -> Desk:
        return Desk(
            current=current,
            decision=self._product.decision,
            devices=self._product.devices,
            document=current.store.document,
        )

    def _step_of(self, view: View, outcome: Future[Step]) -> tuple[Step, None] | tuple[None, BaseException]:
        """Return the committed step, or the error; set the operation aside if a retry would not help."""
        step, error = _outcome(outcome)
        table = table_of(view.operation)
        can_refuse = view.operation.step == CHOOSE and table.refusal is not None
        if isinstance(error, RoostError) and not isinstance(error, Unavailable) and can_refuse:
            # If another conductor has taken the step meanwhile, the commit of the refusal fails, too.
            refusal: Task[Step] = partial(self._plan_refusal, view, error)
            outcome = self._submit(refusal)
            step, error = _outcome(outcome)
        if step is not None:
            return step, None
        assert error is not None, "there is a step or an error"
        if isinstance(error, StoreBroken) or not isinstance(error, Conflict | Unavailable):
            self._set_aside(view.operation, error, now_s=view.now_s, terms=view.terms)
        return None, error

    def _plan_refusal(self, view: View, error: RoostError, current: Current) -> Plan[Step]:
        return _plan(table_of(view.operation).step_after_refusal(view, self._desk(current), error))

    def _set_aside(self, operation: OperationRow, error: BaseException, *, now_s: float, terms: Terms) -> None:
        """Postpone an operation after an error in its step, and log the error.

        If another conductor has continued it, nothing is done: its rows were read at different times, and may
        contradict each other.
        """
        stored = self._reader.operation(operation.id)
        if stored is None or stored.version != operation.version:
            return
        work_metrics.CONDUCTOR_FAULTS.inc()
        log.fault(f"operation {operation.id}", error)
        self._postpone(operation, until_s=now_s + terms.owner_s)

    def _postpone(self, operation: OperationRow, *, until_s: float) -> None:
        row = next_version(operation, due_at_s=until_s, owner="", owned_until_s=0.0)
        _outcome(self._submit(_always(Plan(answer=row, work=(replace_row(row),)))))

    def _count(self, builds: Sequence[tuple[Pick, bool]], terms: Terms) -> None:
        """Count builds on their hosts, and disable hosts with too many failures. A count may be lost."""
        now_s = self._reader.now_s() if builds else 0.0
        outcomes = [
            self._submit(_count_task(pick, has_failed=has_failed, failures_max=terms.failed_builds_max, now_s=now_s))
            for pick, has_failed in builds
        ]
        for (pick, _), (reason, _) in zip(builds, map(_outcome, outcomes), strict=True):
            if reason:
                log.event("service_disabled", host=pick.host, reason=reason)

    def _submit(self, task: Task[A]) -> Future[A]:
        outcome: Future[A] = Future()
        try:
            self._serving.submit(task, outcome)
        except Unavailable as error:
            outcome.set_exception(error)
        return outcome


def _outcome(outcome: Future[A]) -> tuple[A, None] | tuple[None, BaseException]:
    """Wait for the result of a task or its error."""
    error = outcome.exception()
    return (outcome.result(), None) if error is None else (None, error)


def _always(plan: Plan[A]) -> Task[A]:
    return lambda _current: plan


def _count_task(pick: Pick, *, has_failed: bool, failures_max: int, now_s: float) -> Task[str]:
    def task(current: Current) -> Plan[str]:
        writes, reason = plan_count(current.state, pick, has_failed=has_failed, failures_max=failures_max)
        if not reason:
            return Plan(answer=reason, writes=writes)
        event = line(current, "service.disabled", now_s=now_s, host=pick.host, reason=reason)
        record = ChangeRow(
            id=current.new_id("change"),
            at_s=current.state.now_s,
            kind="host.disable",
            object=pick.host,
            body=msgspec.json.encode({"reason": reason}),
        )
        return Plan(answer=reason, writes=writes, work=(event,), trail=(record,))

    return task


def _plan(step: Commit) -> Plan[Step]:
    return Plan(answer=step, writes=step.writes, work=(replace_row(step.operation), *step.work))


def _act(step: Choose) -> Act[Step]:
    def answer(result: Result) -> Step:
        if isinstance(result, Exception):
            raise result
        return step

    return Act(deed=step.scheduler_request, answer=answer)
