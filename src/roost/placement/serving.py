"""The one thread that owns the columns: it answers what waits, and commits what was planned in groups."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from roost.errors import Conflict, Unavailable
from roost.model.journal import Claim, Item, Refusal, Release
from roost.placement.current import Current
from roost.placement.plans import Plan

Answer = TypeVar("Answer")
Taken_contra = TypeVar("Taken_contra", contravariant=True)
Task = Callable[[Current], Answer | Plan[Answer]]


class Outcome(Protocol[Taken_contra]):
    """Where an answer goes: what a ``concurrent.futures.Future`` is, and more than one thing can be."""

    def set_running_or_notify_cancel(self) -> bool:
        """Say whether anybody still wants the answer."""

    def set_result(self, result: Taken_contra, /) -> None:
        """Take the answer."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Take an error instead."""


class _Job(Generic[Answer]):
    """One task on its way."""

    __slots__ = ("attempts", "outcome", "plan", "task")

    def __init__(self, task: Task[Answer], outcome: Outcome[Answer]) -> None:
        self.task = task
        self.outcome = outcome
        self.plan: Plan[Answer] | None = None
        self.attempts = 0


class Serving:
    """A queue of tasks and the thread that works on it.

    Args:
        current: the columns and the store behind them; nobody else touches them from now on.
        queue_max: tasks that may wait, >= 1; more are turned away.
        group_max: tasks that are worked on together, and committed together, at most, >= 1.
        retries: how often a plan that lost a race is made anew.
    """

    def __init__(
        self, current: Current, *, queue_max: int = 1024, group_max: int = 64, retries: int = 10
    ) -> None:  # fmt: skip
        self._current = current
        self._group_max = group_max
        self._retries = retries
        self._waiting: queue.Queue[_Job[Any] | None] = queue.Queue(queue_max)
        self._thread = threading.Thread(target=self._work, name="placement", daemon=True)
        self._thread.start()

    @property
    def waiting_count(self) -> int:
        """How many tasks wait, about."""
        return self._waiting.qsize()

    def submit(self, task: Task[Answer], outcome: Outcome[Answer]) -> None:
        """Let a task be worked on; its outcome is told from the thread.

        A task is a function of the columns. It returns an answer, or a plan whose answer is given when its
        writes are durable; then it may run again, if somebody else was faster.

        Raises:
            Unavailable: too much waits already.
        """
        try:
            self._waiting.put_nowait(_Job(task, outcome))
        except queue.Full:
            raise Unavailable(f"{self._waiting.maxsize:,} requests wait already (limit queue_max); try again") from None

    def run(self, task: Task[Answer]) -> Answer:
        """Work on a task, and wait for its answer.

        Raises:
            RoostError: as the task raises it.
        """
        outcome: Future[Answer] = Future()
        self.submit(task, outcome)
        return outcome.result()

    def stop(self) -> None:
        """Finish what waits, end the thread, and close the store."""
        self._waiting.put(None)
        self._thread.join()
        self._current.store.close()

    def _work(self) -> None:
        is_running = True
        while is_running:
            group = [self._waiting.get()]
            try:
                while len(group) < self._group_max:
                    group.append(self._waiting.get_nowait())
            except queue.Empty:
                pass
            is_running = None not in group
            self._serve([job for job in group if job is not None and job.outcome.set_running_or_notify_cancel()])

    def _serve(self, jobs: Sequence[_Job[Any]]) -> None:
        """Answer a group; what loses a race goes round again."""
        while jobs:
            try:
                self._current.refresh()
            except Exception as error:  # noqa: BLE001  # the thread must live on, and everybody gets an answer
                for job in jobs:
                    job.outcome.set_exception(error)
                return
            planned = [job for job in jobs if self._plan(job)]
            jobs = [job for jobs in _phases(planned) for job in self._commit(jobs)]

    def _plan(self, job: _Job[Answer]) -> bool:
        """Run a task on the columns; say whether something is to be written."""
        try:
            result = job.task(self._current)
        except Exception as error:  # noqa: BLE001  # as above
            job.outcome.set_exception(error)
            return False
        if isinstance(result, Plan):
            job.plan = result
            return True
        job.outcome.set_result(result)
        return False

    def _commit(self, jobs: list[_Job[Any]]) -> list[_Job[Any]]:
        """Commit plans together; return those that lost a race and may try again."""
        try:
            refusals = self._write(jobs)
        except Exception as error:  # noqa: BLE001  # as above
            for job in jobs:
                job.outcome.set_exception(error)
            return []
        beaten = []
        for job, refusal in zip(jobs, refusals, strict=True):
            assert job.plan is not None
            job.attempts += 1
            if refusal is None:
                job.outcome.set_result(job.plan.answer)
            elif job.attempts <= self._retries:
                beaten.append(job)
            else:
                job.outcome.set_exception(
                    Conflict(f"others were faster {job.attempts} times ({refusal.kind} {refusal.table}); try again")
                )
        return beaten

    def _write(self, jobs: list[_Job[Any]]) -> list[Refusal | None]:
        plans = [job.plan for job in jobs if job.plan is not None]
        creating = [plan.create for plan in plans if plan.create is not None]
        if not creating:
            return self._current.commit([Item(writes=plan.writes) for plan in plans])
        with self._current.creating("provider", sum(plan.count for plan in plans)) as first:
            items, number = [], first
            for plan, create in zip(plans, creating, strict=True):
                items.append(Item(writes=create(number)))
                number += plan.count
            return self._current.commit(items)


def _phases(jobs: list[_Job[Any]]) -> list[list[_Job[Any]]]:
    """Tell claims, which share few statements, from other writes, and from providers that are created in turn.

    Claims come after the other writes: these name generations, which claims raise, and claims name none.
    """
    phases: tuple[list[_Job[Any]], ...] = ([], [], [])
    for job in jobs:
        assert job.plan is not None
        if job.plan.create is not None:
            phases[2].append(job)
        elif all(isinstance(write, Claim | Release) for write in job.plan.writes):
            phases[1].append(job)
        else:
            phases[0].append(job)
    return [phase for phase in phases if phase]
