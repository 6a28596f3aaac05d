"""A conductor at work: it takes operations that are due, finds the next step of each, and commits it.

Many conductors may work on one database. Who takes an operation owns it for a while; each step is committed only while
the operation is as it was read, so whoever was too slow, or was thought dead, loses that commit and drops what it did.
A step that is committed is all there is: any conductor goes on from there.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from roost.conductor.builds.build_failures import plan_count
from roost.conductor.operation.events import Transition
from roost.conductor.operation.row_changes import make_due, next_version, replace_row
from roost.conductor.operation.step import CHOOSE, Choose, Commit, Desk, Step, Terms, View
from roost.conductor.operation.story import line
from roost.conductor.steps import table_of
from roost.conductor.views import views_of
from roost.errors import Conflict, RoostError, StoreBroken, Unavailable
from roost.model.devices.pci import PciRequest
from roost.model.evidence.decision import Decision, Pick
from roost.model.request import Request
from roost.model.work.work_rows import OperationRow
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving, Task
from roost.placement.write_plan import Act, Plan, Result
from roost.ports import WorkReader

# So many operations are worked on at once: they share commits.
_TOGETHER_MAX = 64
# So often who works for all cells looks for operations of any.
_EVERYWHERE_S = 10.0
# So often in a turn a step is looked for that is refused because of another row than that of its operation.
_TRIES = 3
# Then it waits for so long.
_PAUSE_S = 1.0

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What a conductor needs of the product behind it; all of it is used in the thread that owns the columns."""

    decision: Callable[[str], Decision]  # a stored one; raises NotFound
    devices: Callable[[Request], tuple[PciRequest, ...]]  # that a request wants
    terms: Callable[[], Terms]  # by the settings in force
    note: Callable[[Transition], object] = lambda _transition: None  # called after each step that was committed


class Conductor:
    """Works on the operations of some cells.

    Args:
        name: tells it from all others that work on the database.
        cells: whose operations these are; None: of all cells. The empty name is that of operations without a host.
        serving: the thread that owns the columns, and commits.
        reader: what is known of work; nobody else uses it while a turn is on.
    """

    def __init__(
        self, name: str, *, cells: Sequence[str] | None, serving: Serving, reader: WorkReader, product: Product
    ) -> None:
        self._name = name
        self._cells = cells
        self._serving = serving
        self._reader = reader
        self._product = product
        self._everywhere_at_s = 0.0

    def turn(self) -> int:
        """Take what is due, and work on it until all of it waits or is over; return how many operations that were.

        Raises:
            Unavailable: the database cannot be read.
        """
        terms = self._product.terms()
        now_s = self._reader.now_s()
        mine = taken = self._taken(self._due(now_s), until_s=now_s + terms.owner_s)
        tries: Counter[int] = Counter()
        while mine:
            mine = self._stepped(self._views(mine, terms=terms), tries=tries)
        return len(taken)

    def take_over(self) -> None:
        """Let the operations of conductors that are no more be due, where nobody else works on the database.

        Raises:
            Unavailable: the database cannot be read.
        """
        last = 0
        while rows := self._reader.operations(after_id=last, most=_TOGETHER_MAX, is_open=True):
            last, now_s = rows[-1].id, self._reader.now_s()
            due = [make_due(row, now_s=now_s) for row in rows if row.owner]
            for outcome in [self._asked(_always(Plan(answer=row, work=(replace_row(row),)))) for row in due]:
                _outcome(outcome)

    def _due(self, now_s: float) -> list[OperationRow]:
        if self._cells is not None:
            return self._reader.due_operations(self._cells, now_s=now_s, most=_TOGETHER_MAX) if self._cells else []
        if now_s >= self._everywhere_at_s:
            # An instance may be of a cell that has no host any more. To look for such takes longer.
            self._everywhere_at_s = now_s + _EVERYWHERE_S
            return self._reader.due_operations(None, now_s=now_s, most=_TOGETHER_MAX)
        cells = self._serving.run(lambda current: sorted({"", *current.state.hosts.cells}))
        return self._reader.due_operations(cells, now_s=now_s, most=_TOGETHER_MAX)

    def _taken(self, due: Sequence[OperationRow], *, until_s: float) -> list[OperationRow]:
        """Take operations, each for itself; return those that nobody else was faster to take."""
        rows = [next_version(row, owner=self._name, owned_until_s=until_s) for row in due]
        outcomes = [self._asked(_always(Plan(answer=row, work=(replace_row(row),)))) for row in rows]
        found = [_outcome(outcome)[0] for outcome in outcomes]
        return [row for row in found if row is not None]

    def _views(self, rows: Sequence[OperationRow], *, terms: Terms) -> list[View]:
        """Read what next steps depend on; what cannot be understood is set aside, and the others go on."""
        try:
            return views_of(rows, reader=self._reader, terms=terms)
        except StoreBroken:  # The others go on, each on its own.
            return [view for row in rows for view in self._viewed(row, terms=terms)]

    def _viewed(self, row: OperationRow, *, terms: Terms) -> list[View]:
        try:
            return views_of([row], reader=self._reader, terms=terms)
        except StoreBroken as error:
            self._set_aside(row, error, now_s=self._reader.now_s(), terms=terms)
            return []

    def _stepped(self, views: Sequence[View], *, tries: Counter[int]) -> list[OperationRow]:
        """Take the next step of each; return the operations that go on at once.

        Args:
            tries: how often a step of an operation was refused in this turn.
        """
        outcomes: list[Future[Step]] = [self._asked(self._task(view)) for view in views]
        found = [self._step_of(view, outcome) for view, outcome in zip(views, outcomes, strict=True)]
        done = [step for step, _ in found if step is not None]
        for step in done:
            if step.transition is not None:
                self._product.note(step.transition)
        if done:
            self._count([each for step in done if isinstance(step, Commit) for each in step.builds], views[0].terms)
        refused = [view for view, (_, error) in zip(views, found, strict=True) if isinstance(error, Conflict)]
        going_on = [step.operation for step in done if step.operation.owner == self._name]
        return going_on + [view.operation for view in refused if self._is_to_try(view, tries)]

    def _is_to_try(self, view: View, tries: Counter[int]) -> bool:
        """Say whether a step that was refused is looked for at once, since the operation is ours and as it was."""
        row = view.operation
        known = self._reader.operation(row.id)
        if known is None or known.version != row.version:
            return False
        tries[row.id] += 1
        if tries[row.id] < _TRIES:
            return True
        self._let_wait(row, until_s=view.now_s + _PAUSE_S)
        return False

    def _task(self, view: View) -> Task[Step]:
        """Return what finds the next step on the columns as they are, and commits it."""
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
        """Return the step that was committed, or why none was; what nobody can mend is set aside."""
        step, error = _outcome(outcome)
        table = table_of(view.operation)
        can_refuse = view.operation.step == CHOOSE and table.refusal is not None
        if isinstance(error, RoostError) and not isinstance(error, Unavailable) and can_refuse:
            # If another conductor took the step, this one is refused as well.
            refused: Task[Step] = partial(self._refused_step, view, error)
            again: Future[Step] = self._asked(refused)
            step, error = _outcome(again)
        if step is not None:
            return step, None
        assert error is not None, "there is a step or an error"
        if isinstance(error, StoreBroken) or not isinstance(error, Conflict | Unavailable):
            self._set_aside(view.operation, error, now_s=view.now_s, terms=view.terms)
        return None, error

    def _refused_step(self, view: View, error: RoostError, current: Current) -> Plan[Step]:
        return _plan(table_of(view.operation).refused_step(view, self._desk(current), error))

    def _set_aside(self, operation: OperationRow, error: BaseException, *, now_s: float, terms: Terms) -> None:
        """Let an operation wait that no step was found for, and let the log know why.

        Where somebody else went on with it, what was read of it is of several moments, and may well make no sense.
        """
        known = self._reader.operation(operation.id)
        if known is None or known.version != operation.version:
            return
        log.fault(f"operation {operation.id}", error)
        self._let_wait(operation, until_s=now_s + terms.owner_s)

    def _let_wait(self, operation: OperationRow, *, until_s: float) -> None:
        row = next_version(operation, due_at_s=until_s, owner="", owned_until_s=0.0)
        _outcome(self._asked(_always(Plan(answer=row, work=(replace_row(row),)))))

    def _count(self, builds: Sequence[tuple[Pick, bool]], terms: Terms) -> None:
        """Count builds on their hosts, of which those are disabled where too many fail: a hint, which may be lost."""
        now_s = self._reader.now_s() if builds else 0.0
        outcomes = [
            self._asked(_counting(pick, has_failed=has_failed, most=terms.failed_builds_max, now_s=now_s))
            for pick, has_failed in builds
        ]
        for (pick, _), (reason, _) in zip(builds, map(_outcome, outcomes), strict=True):
            if reason:
                log.event("service_disabled", host=pick.host, reason=reason)

    def _asked(self, task: Task[A]) -> Future[A]:
        outcome: Future[A] = Future()
        try:
            self._serving.submit(task, outcome)
        except Unavailable as error:
            outcome.set_exception(error)
        return outcome


def _outcome(outcome: Future[A]) -> tuple[A, None] | tuple[None, BaseException]:
    """Wait for what came of a task: its answer, or an error."""
    error = outcome.exception()
    return (outcome.result(), None) if error is None else (None, error)


def _always(plan: Plan[A]) -> Task[A]:
    return lambda _current: plan


def _counting(pick: Pick, *, has_failed: bool, most: int, now_s: float) -> Task[str]:
    def task(current: Current) -> Plan[str]:
        writes, reason = plan_count(current.state, pick, has_failed=has_failed, failures_max=most)
        event = line(current, "service.disabled", now_s=now_s, host=pick.host, reason=reason) if reason else None
        return Plan(answer=reason, writes=writes, work=() if event is None else (event,))

    return task


def _plan(step: Commit) -> Plan[Step]:
    return Plan(answer=step, writes=step.writes, work=(replace_row(step.operation), *step.work))


def _act(step: Choose) -> Act[Step]:
    def answer(result: Result) -> Step:
        if isinstance(result, Exception):
            raise result
        return step

    return Act(deed=step.deed, answer=answer)
