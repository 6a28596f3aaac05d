"""The deciding thread: it runs tasks on the columns, and commits their plans in groups."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty
from typing import Any

from roost.engine.columns.state import State
from roost.errors import OverBudget, RoostError, StoreReplaced, Unavailable, race_conflict
from roost.model.placement.placement_api import GENERATION_CODE
from roost.model.work.work_rows import Put
from roost.model.writes import Item, Refusal
from roost.observe import log, metrics
from roost.placement.current import Current
from roost.placement.database_silence import Silence
from roost.placement.group_commit import Gathering, split_phases
from roost.placement.job import Answer, Job, Outcome, Task, plan_of
from roost.placement.last_success import LastSuccess
from roost.placement.task_queue import Arrivals
from roost.placement.write_plan import Act, Again, Deed, Plan, Result
from roost.ports import Store

# After this number of lost races, a plan is committed in a group of its own.
_SHARED_ATTEMPTS_MAX = 3

Decide = Callable[[Sequence[Deed]], Sequence[Result]]
WorkListener = Callable[[Sequence[Put]], None]
ResultListener = Callable[[Deed, Result, float], None]


class Serving:
    """A queue of tasks, and the thread that runs them.

    Whatever a task, the store or a listener does, the thread continues, and every task gets an answer. If the thread
    cannot continue, all waiting tasks get an error, ``problem`` has the reason, and no further task is accepted.

    Args:
        current: the columns and the store behind them; used only by this thread from now on.
        queue_max: maximum number of waiting tasks, >= 1; further ones are refused.
        group_max: maximum number of tasks that run and commit together, >= 1.
        retries: maximum number of new plans after lost races.
        tidy: called in the thread after each group, with the number of accepted commits since the last call.
        decide: runs acts on the same columns, in order; None: no task returns an act.
        on_work: called in the thread with the work of each durable plan; its errors are only logged.
        on_result: called in the thread with each deed, its result, and the seconds since its arrival.
        has_thread: whether to start a thread; otherwise each caller runs its task itself, one at a time.
        slices_max: maximum number of runs of an act, >= 1; after ``OverBudget``, the act waits for its next run.
    """

    def __init__(
        self,
        current: Current,
        *,
        queue_max: int = 1024,
        group_max: int = 64,
        retries: int = 10,
        tidy: Callable[[int], None] | None = None,
        decide: Decide | None = None,
        on_work: WorkListener | None = None,
        on_result: ResultListener | None = None,
        has_thread: bool = True,
        slices_max: int = 1,
    ) -> None:
        self._current = current
        self.queue_max = queue_max
        self._retries = retries
        self._slices_max = slices_max
        self._tidy = tidy
        self._decide = decide
        self._on_work = on_work
        self._on_result = on_result
        self._accepted = 0
        self._has_written = False  # whether the last group wrote
        self._silence = Silence()
        self._trouble: type[Unavailable] | None = None  # the logged error of the database; None: it works
        self.writes = LastSuccess()
        self._begun_s: float | None = None  # start of the current group; None: the thread waits
        self.problem = ""  # why the thread ended by itself; empty: it did not
        self._is_stopped = False
        self._entry = threading.Lock()  # Held to add a task and to close the queue: a closed queue gets no more tasks.
        self._turn = threading.Lock()  # Only its holder may use the columns.
        self._waiting: Arrivals[Job[Any] | None] = Arrivals()
        self._group_max = group_max
        self._gathering = Gathering(self._waiting, group_max)
        self._thread = threading.Thread(target=self._work, name="placement", daemon=True) if has_thread else None
        if self._thread is not None:
            self._thread.start()

    @property
    def waiting_count(self) -> int:
        """Approximate number of waiting tasks."""
        return len(self._waiting)

    @property
    def busy_s(self) -> float:
        """Duration of the current group, s; 0: the thread waits."""
        begun_s = self._begun_s
        return 0.0 if begun_s is None else time.monotonic() - begun_s

    @property
    def state(self) -> State:
        """The present columns. Only ``roost.engine.survey`` may read them in another thread."""
        return self._current.state

    @property
    def is_stopped(self) -> bool:
        """Whether no further task is accepted."""
        return self._is_stopped

    @property
    def store(self) -> Store:
        """The store; only its properties may be read in another thread."""
        return self._current.store

    def measure(self) -> None:
        """Update the metrics; callable from any thread."""
        state = self._current.state
        metrics.QUEUE_DEPTH.set(self.waiting_count)
        metrics.QUEUE_LIMIT.set(self.queue_max)
        metrics.BUSY_SECONDS.set(self.busy_s)
        metrics.GROUP_LIMIT.set(self._gathering.size_max)
        metrics.PROVIDERS.set(len(state.providers.row_of_uuid))
        metrics.CONSUMERS.set(len(state.holders))
        metrics.REVISION.set(state.position)

    def submit(self, task: Task[Answer], outcome: Outcome[Answer]) -> None:
        """Queue a task; its outcome is set in the thread.

        A task is a function of the columns. It returns an answer, a plan or an act. The answer of a plan is sent when
        its writes are durable; after a concurrent change the task runs again. An act runs together with all acts of its
        group.

        Raises:
            Unavailable: the queue is full, or the thread is ending or has ended.
        """
        self.submit_all([(task, outcome)])

    def submit_all(self, tasks: Sequence[tuple[Task[Answer], Outcome[Answer]]]) -> None:
        """Queue tasks next to each other, so that they can share a group; see ``submit``.

        Raises:
            Unavailable: the queue has no room for all of them, or the thread is ending or has ended.
        """
        jobs = [Job(task, outcome) for task, outcome in tasks]
        with self._entry:
            if self._is_stopped:
                raise Unavailable(self.problem or "the server is stopping; try again")
            if len(self._waiting) + len(jobs) - 1 >= self.queue_max:
                text = f"{self.queue_max:,} requests wait already (limit placement.queue_max); try again"
                raise Unavailable(text)
            if self._thread is not None:
                self._waiting.put_all(jobs)
        if self._thread is None:
            self._work_on(jobs)

    def answer_at_once(self, task: Task[Answer]) -> Answer | None:
        """Run a read in the caller's thread, if no other thread uses the columns and they are current.

        For many tasks, the handover to another thread and back would take longer than the task.

        Returns:
            The answer; None: the thread is busy, or the database must be read first: call ``submit``.
        """
        if not self._turn.acquire(blocking=False):
            return None
        try:
            if self._is_stopped or not self._current.is_alone_and_fresh:
                return None
            self._current.refresh()
            metrics.GROUP_SIZE.observe(1)
            result = task(self._current)
            assert not isinstance(result, Plan | Act | Again), "a read plans nothing"
            return result
        finally:
            self._turn.release()

    def run(self, task: Task[Answer]) -> Answer:
        """Run a task and wait for its answer. Not for use in the thread itself, which would wait for ever.

        Raises:
            RoostError: from the task.
        """
        assert threading.current_thread() is not self._thread, "this is the thread that would answer"
        outcome: Future[Answer] = Future()
        self.submit(task, outcome)
        return outcome.result()

    def stop(self) -> None:
        """Finish the waiting tasks, end the thread, and close the store; later tasks get ``Unavailable``."""
        with self._entry:
            self._is_stopped = True
            self._waiting.put(None)
        if self._thread is not None:
            self._thread.join()
        with self._turn:
            self._current.store.close()

    def _work(self) -> None:
        group: Sequence[Job[Any] | None] = []
        try:
            while None not in group:
                self._gathering.size_max = self._current.group_limit.size(self._group_max)
                group = self._gathering.next(has_written=self._has_written)
                self._work_on(group)
        except BaseException as error:  # noqa: BLE001  # ``problem`` has the error, and the process ends
            self._give_up(group, error)

    def _give_up(self, group: Sequence[Job[Any] | None], error: BaseException) -> None:
        """Fail all waiting tasks before the thread ends."""
        log.fault("serving", error)
        with self._entry:
            self._is_stopped = True
            self.problem = f"the thread that answers has ended: {error!r}"
        left = [*group]
        with suppress(Empty):
            while True:
                left.append(self._waiting.get(0.0))
        _fail([job for job in left if job is not None], Unavailable(self.problem))

    def _work_on(self, group: Sequence[Job[Any] | None]) -> None:
        with self._turn:
            self._begun_s = time.monotonic()
            jobs = [job for job in group if job is not None]
            self._serve([job for job in jobs if job.slices or job.outcome.set_running_or_notify_cancel()])
            self._tidy_up()
            self._begun_s = None

    def _tidy_up(self) -> None:
        accepted, self._accepted = self._accepted, 0
        self._has_written = accepted > 0
        if not accepted:
            return
        try:
            self._current.shed()
            if self._tidy is not None:
                self._tidy(accepted)
        except Exception as error:  # noqa: BLE001  # no task waits for this, and no answer depends on it
            log.fault("tidy", error)

    def _serve(self, jobs: list[Job[Any]]) -> None:
        """Run a group; repeat the tasks that lose a race."""
        metrics.GROUP_SIZE.observe(len(jobs))
        rounds = deque([jobs] if jobs else [])
        while rounds:
            conflicted = self._serve_round(rounds.popleft())
            # A task that keeps losing may lose to its own group, so it runs alone.
            alone = [job for job in conflicted if job.attempts >= _SHARED_ATTEMPTS_MAX]
            together = [job for job in conflicted if job.attempts < _SHARED_ATTEMPTS_MAX]
            rounds.extend([together] if together else [])
            rounds.extend([job] for job in alone)

    def _drop_stale_jobs(self, jobs: Sequence[Job[Any]]) -> list[Job[Any]]:
        """Fail the jobs that waited through a silence of the database; return the others."""
        errors = [self._silence.error_for(job.since_s) for job in jobs]
        for job, error in zip(jobs, errors, strict=True):
            if error is not None:
                _fail([job], error)
        return [job for job, error in zip(jobs, errors, strict=True) if error is None]

    def _serve_round(self, jobs: Sequence[Job[Any]]) -> list[Job[Any]]:
        """Answer the jobs that can be answered; return those that lost a race and may try again."""
        jobs = self._drop_stale_jobs(jobs)
        if not jobs:
            return []
        position = self._current.state.position
        try:
            self._current.refresh()
        except Exception as error:  # noqa: BLE001  # the thread must go on, and every task gets an answer
            self._silence.note(error)
            self._log_trouble(error)
            _fail(jobs, error)
            return []
        if self._current.store.is_shared:
            metrics.BEHIND.observe(self._current.state.position - position)
        results = [(job, job.act if job.slices else self._plan(job)) for job in jobs]
        planned = [job for job, result in results if isinstance(result, Plan)]
        conflicted = [job for phase in split_phases(planned, plan_of=plan_of) for job in self._commit(phase)]
        for job, result in results:
            if isinstance(result, StoreReplaced):
                conflicted += self._select_retries([job], result)
        # Acts run after the commits: the plans were made on columns without the effects of the acts.
        acting = [job for job, result in results if isinstance(result, Act)]
        replaced = self._do(acting)
        dependent = [job for job, result in results if isinstance(result, Again)]
        if acting:
            return conflicted + replaced + dependent
        if dependent:
            _fail(dependent, Unavailable("the request that this one waits for did not run; try again"))
        return conflicted

    def _plan(self, job: Job[Answer]) -> Plan[Answer] | Act[Answer] | Again | StoreReplaced | None:
        """Run a task on the columns; return its plan or act, if it has no answer yet, or why it must run again."""
        if not self._drop_stale_jobs([job]):  # An earlier job of the group may have just waited through a silence.
            return None
        try:
            result = job.task(self._current)
        except StoreReplaced as error:  # The columns are still those of the old database.
            return error
        except Exception as error:  # noqa: BLE001  # as above
            self._silence.note(error)
            _fail([job], error)
            return None
        if isinstance(result, Plan):
            job.plan = result
        elif isinstance(result, Act):
            job.act = result
        elif not isinstance(result, Again):
            _answer(job, result)
            return None
        return result

    def _do(self, jobs: list[Job[Any]]) -> list[Job[Any]]:
        """Run acts together, and answer them; return those to repeat after a replacement of the database."""
        jobs = self._drop_stale_jobs(jobs)
        if not jobs:
            return []
        assert self._decide is not None, "acts need a function that decides them"
        metrics.COMMIT_SIZE.observe(len(jobs))
        try:
            results: Sequence[Result] = self._decide([job.act.deed for job in jobs if job.act is not None])
        except Exception as error:  # noqa: BLE001  # as above
            # Some acts may be durable, so none is repeated.
            self.note_write(error)
            results, replaced = [error] * len(jobs), []
        else:
            replaced = self._select_replaced(jobs, results)
            if not all(isinstance(result, Exception) for result in results):
                self.note_write(None)
        done = [
            (job, result)
            for job, result in zip(jobs, results, strict=True)
            if job not in replaced and not self._requeue(job, result)
        ]
        now_s = time.monotonic()
        for job, result in done:
            if self._on_result is not None and job.act is not None:
                call_listener("on_result", partial(self._on_result, job.act.deed, result, now_s - job.since_s))
        # A receiver competes for the processor as soon as it has its answer, so all answers are sent at the end.
        for reply in [self._prepare_reply(job, result) for job, result in done]:
            reply()
        return replaced

    def _select_replaced(self, jobs: Sequence[Job[Any]], results: Sequence[Result]) -> list[Job[Any]]:
        """Return the acts to repeat on the columns of the new database, which has none of their writes."""
        found = []
        for job, result in zip(jobs, results, strict=True):
            if isinstance(result, StoreReplaced):
                job.attempts += 1
                job.slices = 0  # Its search began on the old columns.
                if job.attempts <= self._retries:
                    job.drop_act()
                    found.append(job)
        return found

    def _requeue(self, job: Job[Any], result: Result) -> bool:
        """Queue an act behind the waiting jobs if it exceeded its budget; return whether it was queued."""
        if not isinstance(result, OverBudget) or self._thread is None:
            return False
        job.slices += 1
        with self._entry:
            if job.slices >= self._slices_max or self._is_stopped:
                return False
            self._waiting.put(job)
        return True

    def _prepare_reply(self, job: Job[Answer], result: Result) -> Callable[[], None]:
        """Return the function that answers an act that succeeded or failed."""
        act = job.take_act()
        assert act is not None
        self._accepted += not isinstance(result, Exception)
        try:
            answer = act.answer(result)
        except Exception as error:  # noqa: BLE001  # as above
            return partial(_fail, [job], error)
        return partial(_answer, job, answer)

    def _commit(self, jobs: list[Job[Any]]) -> list[Job[Any]]:
        """Commit plans together; return those that lost a race and may try again."""
        jobs = self._drop_stale_jobs(jobs)
        if not jobs:
            return []
        metrics.COMMIT_SIZE.observe(len(jobs))
        try:
            refusals = self._write(jobs)
        except StoreReplaced as error:
            return self._select_retries(jobs, error)
        except Exception as error:  # noqa: BLE001  # as above
            self.note_write(error)
            _fail(jobs, error)
            return []
        if any(
            refusal is None and job.plan is not None and job.plan.has_writes
            for job, refusal in zip(jobs, refusals, strict=True)
        ):
            self.note_write(None)
        conflicted = []
        for job, refusal in zip(jobs, refusals, strict=True):
            assert job.plan is not None
            job.attempts += 1
            if refusal is None:
                self._accepted += 1
                self._call_listeners(job.plan)
                _answer(job, job.plan.answer)
            elif refusal.is_final and not job.plan.reads_work:
                _fail([job], race_conflict(f"{refusal.work} was changed meanwhile: nothing was written"))
            elif job.attempts <= self._retries:
                metrics.CONFLICTS.inc()
                conflicted.append(job)
            else:
                row = f"{refusal.kind} {refusal.table}"
                text = f"conflicted with concurrent changes {job.attempts} times ({row}); try again"
                _fail([job], race_conflict(text, code=GENERATION_CODE))
        return conflicted

    def _select_retries(self, jobs: list[Job[Any]], error: StoreReplaced) -> list[Job[Any]]:
        """Return the jobs to plan again after a replacement of the database; fail those without attempts left.

        The new database has none of their writes.
        """
        for job in jobs:
            job.attempts += 1
        _fail([job for job in jobs if job.attempts > self._retries], error)
        return [job for job in jobs if job.attempts <= self._retries]

    def _call_listeners(self, plan: Plan[Any]) -> None:
        """Call the listeners of a durable plan; their errors do not affect it."""
        if plan.on_commit is not None:
            call_listener("on_commit", plan.on_commit)
        if plan.work and self._on_work is not None:
            call_listener("on_work", partial(self._on_work, plan.work))

    def note_write(self, error: Exception | None) -> None:
        """Record the result of a write, and log changes; only in the thread.

        Args:
            error: None: the write succeeded.
        """
        self.writes.note(error)
        if error is not None:
            self._silence.note(error)
        self._log_trouble(error)

    def _log_trouble(self, error: Exception | None) -> None:
        """Log when an error of the database begins, changes its kind, or ends."""
        trouble = type(error) if isinstance(error, Unavailable) else None
        if trouble is not self._trouble:
            self._trouble = trouble
            # Only kinds are compared: the text of an error differs between attempts to connect.
            if trouble is None:
                log.event("database_is_well")
            else:
                log.event("database_fails", problem=str(error))

    def _write(self, jobs: list[Job[Any]]) -> list[Refusal | None]:
        plans = [job.plan for job in jobs if job.plan is not None]
        creating = [(plan.create, plan.trail) for plan in plans if plan.create is not None]
        if not creating:
            return self._current.commit([Item(writes=plan.writes, work=plan.work, trail=plan.trail) for plan in plans])
        assert len(creating) == len(plans), "all plans of a phase create a row, or none does"
        with self._current.reserve_in_order(plans[0].creates, len(creating)) as first:
            return self._current.commit(
                [Item(writes=create(first + at), trail=trail) for at, (create, trail) in enumerate(creating)]
            )


def call_listener(name: str, listen: Callable[[], None]) -> None:
    """Call a listener; log and count its error."""
    try:
        listen()
    except Exception as error:  # noqa: BLE001  # the caller goes on
        metrics.LISTENERS_FAILED.inc()
        log.fault(name, error)


def _answer(job: Job[Answer], result: Answer) -> None:
    job.is_answered = True
    try:
        job.outcome.set_result(result)
    except Exception as error:  # noqa: BLE001  # the receiver is gone, with its event loop
        log.fault("answer", error)


def _fail(jobs: Sequence[Job[Any]], error: Exception) -> None:
    """Send an error to each job that has no answer yet."""
    if not isinstance(error, RoostError) or isinstance(error, Unavailable):
        metrics.FAULTS.inc()
    for job in jobs:
        if job.is_answered:
            continue
        job.drop_act()
        job.is_answered = True
        try:
            job.outcome.set_exception(error)
        except Exception as other:  # noqa: BLE001  # as above
            log.fault("answer", other)
