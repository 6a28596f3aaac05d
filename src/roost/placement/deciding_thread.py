"""The thread that works on the columns: it answers what waits, and commits what was planned in groups."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty
from typing import Any, Generic, Protocol, TypeVar

from roost.errors import Conflict, OverBudget, RoostError, StoreReplaced, Unavailable
from roost.model.placement.placement_api import GENERATION_CODE
from roost.model.work.work_rows import Put
from roost.model.writes import Claim, Item, Refusal, Release
from roost.observe import log, metrics
from roost.placement.current import Current
from roost.placement.database_silence import Silence
from roost.placement.group_commit import Gathering
from roost.placement.task_queue import Arrivals
from roost.placement.write_plan import Act, Again, Deed, Plan, Result

# After so many lost races a plan is committed alone.
_TOGETHER_MAX = 3

Answer = TypeVar("Answer")
Taken_contra = TypeVar("Taken_contra", contravariant=True)
Task = Callable[[Current], Answer | Plan[Answer] | Act[Answer] | Again]
Decide = Callable[[Sequence[Deed]], Sequence[Result]]
Heed = Callable[[Sequence[Put]], None]


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

    __slots__ = ("act", "attempts", "is_answered", "outcome", "plan", "since_s", "slices", "task")

    def __init__(self, task: Task[Answer], outcome: Outcome[Answer]) -> None:
        self.task = task
        self.outcome = outcome
        self.plan: Plan[Answer] | None = None
        self.act: Act[Answer] | None = None
        self.attempts = 0
        self.slices = 0  # how often its act was broken off to let others have a turn
        self.is_answered = False
        self.since_s = time.monotonic()


class Serving:
    """A queue of tasks and the thread that works on it.

    Whatever a task, the store or whoever is told of something does, the thread goes on, and everybody gets an answer.
    Where it cannot go on all the same, all who wait are told so, ``problem`` says it, and nothing is taken any more.

    Args:
        current: the columns and the store behind them; nobody else touches them from now on.
        queue_max: tasks that may wait, >= 1; more are turned away.
        group_max: tasks that are worked on together, and committed together, at most, >= 1.
        retries: how often a plan that lost a race is made anew.
        tidy: told in the thread, after each group, how many commits were accepted since the last time.
        decide: does acts on the same columns, in their order; None: there are none.
        heed: told in the thread of work that plans wrote, when it is durable; what goes wrong there is only logged.
        has_thread: whether there is a thread; else each task is worked on by whoever submits it, one at a time.
        slices_max: how often an act may be broken off by ``OverBudget`` and go on behind what waits, the last time
            included, >= 1.
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
        heed: Heed | None = None,
        has_thread: bool = True,
        slices_max: int = 1,
    ) -> None:
        self._current = current
        self._queue_max = queue_max
        self._retries = retries
        self._slices_max = slices_max
        self._tidy = tidy
        self._decide = decide
        self._heed = heed
        self._accepted = 0
        self._has_written = False  # whether the last group did
        self._silence = Silence()
        self._trouble: type[Unavailable] | None = None  # with the database, as the log was told
        self._begun_s: float | None = None  # when work on the group at hand began; None: the thread waits
        self.problem = ""  # why the thread ended by itself; empty: it did not
        self._is_stopped = False
        self._entry = threading.Lock()  # Behind the end of the queue nobody would be answered.
        self._turn = threading.Lock()  # Who holds it may touch the columns.
        self._waiting: Arrivals[_Job[Any] | None] = Arrivals()
        self._gathering = Gathering(self._waiting, group_max)
        self._thread = threading.Thread(target=self._work, name="placement", daemon=True) if has_thread else None
        if self._thread is not None:
            self._thread.start()

    @property
    def waiting_count(self) -> int:
        """How many tasks wait, about."""
        return len(self._waiting)

    @property
    def busy_s(self) -> float:
        """Seconds for which the group at hand has been worked on; 0: the thread waits."""
        begun_s = self._begun_s
        return 0.0 if begun_s is None else time.monotonic() - begun_s

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to the same database."""
        return self._current.store.is_shared

    def measure(self) -> None:
        """Tell the metrics how things are; from any thread."""
        state = self._current.state
        metrics.QUEUE_DEPTH.set(self.waiting_count)
        metrics.PROVIDERS.set(len(state.providers.row_of_uuid))
        metrics.CONSUMERS.set(len(state.holders))
        metrics.REVISION.set(state.position)

    def submit(self, task: Task[Answer], outcome: Outcome[Answer]) -> None:
        """Let a task be worked on; its outcome is told from the thread.

        A task is a function of the columns. It returns an answer, or a plan whose answer is given when its
        writes are durable; then it may run again, if somebody else was faster. Or it returns an act, which is done
        with all others of its group.

        Raises:
            Unavailable: too much waits already, or the thread is to end, or has.
        """
        job = _Job(task, outcome)
        with self._entry:
            if self._is_stopped:
                raise Unavailable(self.problem or "the server is stopping; try again")
            if len(self._waiting) >= self._queue_max:
                text = f"{self._queue_max:,} requests wait already (limit placement.queue_max); try again"
                raise Unavailable(text)
            if self._thread is not None:
                self._waiting.put(job)
        if self._thread is None:
            self._work_on([job])

    def answer_at_once(self, task: Task[Answer]) -> Answer | None:
        """Answer a task that plans nothing in the thread of the caller, if nothing has to be waited for.

        Handing a task to another thread and its answer back takes longer than many a task.

        Returns:
            The answer; None: others are at work, or the database has to be asked first: ``submit`` it.
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
        """Work on a task, and wait for its answer; not in the thread itself, which would wait for ever.

        Raises:
            RoostError: as the task raises it.
        """
        assert threading.current_thread() is not self._thread, "this is the thread that would answer"
        outcome: Future[Answer] = Future()
        self.submit(task, outcome)
        return outcome.result()

    def stop(self) -> None:
        """Finish what waits, end the thread, and close the store; what comes too late is told ``Unavailable``."""
        with self._entry:
            self._is_stopped = True
            self._waiting.put(None)
        if self._thread is not None:
            self._thread.join()
        with self._turn:
            self._current.store.close()

    def _work(self) -> None:
        group: Sequence[_Job[Any] | None] = []
        try:
            while None not in group:
                group = self._gathering.next(has_written=self._has_written)
                self._work_on(group)
        except BaseException as error:  # noqa: BLE001  # it is told by ``problem``, and ends the process
            self._give_up(group, error)

    def _give_up(self, group: Sequence[_Job[Any] | None], error: BaseException) -> None:
        """Let nobody wait for a thread that ends."""
        log.fault("serving", error)
        with self._entry:
            self._is_stopped = True
            self.problem = f"the thread that answers has ended: {error!r}"
        left = [*group]
        with suppress(Empty):
            while True:
                left.append(self._waiting.get(0.0))
        _fail([job for job in left if job is not None], Unavailable(self.problem))

    def _work_on(self, group: Sequence[_Job[Any] | None]) -> None:
        with self._turn:
            self._begun_s = time.monotonic()
            wanted = [job for job in group if job is not None]
            self._serve([job for job in wanted if job.slices or job.outcome.set_running_or_notify_cancel()])
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
        except Exception as error:  # noqa: BLE001  # nobody waits for this; the next answer does not depend on it
            log.fault("tidy", error)

    def _serve(self, jobs: list[_Job[Any]]) -> None:
        """Answer a group; what loses a race goes round again."""
        metrics.GROUP_SIZE.observe(len(jobs))
        rounds = deque([jobs] if jobs else [])
        while rounds:
            beaten = self._serve_round(rounds.popleft())
            # What loses again and again may be beaten by its own group: alone it cannot be.
            alone = [job for job in beaten if job.attempts >= _TOGETHER_MAX]
            together = [job for job in beaten if job.attempts < _TOGETHER_MAX]
            rounds.extend([together] if together else [])
            rounds.extend([job] for job in alone)

    def _drop_stale_jobs(self, jobs: Sequence[_Job[Any]]) -> list[_Job[Any]]:
        """Fail the jobs that waited while the database was silent; return the others."""
        errors = [self._silence.error_for(job.since_s) for job in jobs]
        for job, error in zip(jobs, errors, strict=True):
            if error is not None:
                _fail([job], error)
        return [job for job, error in zip(jobs, errors, strict=True) if error is None]

    def _serve_round(self, jobs: Sequence[_Job[Any]]) -> list[_Job[Any]]:
        """Answer what can be answered; return what lost a race and may try again."""
        jobs = self._drop_stale_jobs(jobs)
        if not jobs:
            return []
        known = self._current.state.position
        try:
            self._current.refresh()
        except Exception as error:  # noqa: BLE001  # the thread must live on, and everybody gets an answer
            self._silence.note(error)
            self._tell(error)
            _fail(jobs, error)
            return []
        if self._current.store.is_shared:
            metrics.BEHIND.observe(self._current.state.position - known)
        found = [(job, job.act if job.slices else self._plan(job)) for job in jobs]
        planned = [job for job, result in found if isinstance(result, Plan)]
        beaten = [job for phase in _phases(planned) for job in self._commit(phase)]
        # After the plans, which were made on the columns as they were.
        acting = [job for job, result in found if isinstance(result, Act)]
        self._do(acting)
        behind = [job for job, result in found if isinstance(result, Again)]
        if acting:
            return beaten + behind
        if behind:
            _fail(behind, Unavailable("what this waits for was not done; try again"))
        return beaten

    def _plan(self, job: _Job[Answer]) -> Plan[Answer] | Act[Answer] | Again | None:
        """Run a task on the columns; return what it asks for if that is no answer yet."""
        if not self._drop_stale_jobs([job]):  # Another one of its group may have met the silence just now.
            return None
        try:
            result = job.task(self._current)
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

    def _do(self, jobs: list[_Job[Any]]) -> None:
        """Do acts together, and answer them: what loses a race is decided again there."""
        jobs = self._drop_stale_jobs(jobs)
        if not jobs:
            return
        assert self._decide is not None, "somebody asks for acts where there are none"
        metrics.COMMIT_SIZE.observe(len(jobs))
        try:
            results: Sequence[Result] = self._decide([job.act.deed for job in jobs if job.act is not None])
        except Exception as error:  # noqa: BLE001  # as above
            self._silence.note(error)
            self._tell(error)
            results = [error] * len(jobs)
        else:
            self._tell(None)
        done = [(job, result) for job, result in zip(jobs, results, strict=True) if not self._goes_on(job, result)]
        # Whoever is told wakes up, and wants the processor: all are told at the end.
        for tell in [self._prepare_reply(job, result) for job, result in done]:
            tell()

    def _goes_on(self, job: _Job[Any], result: Result) -> bool:
        """Put an act whose search took long behind what waits; say whether that was done."""
        if not isinstance(result, OverBudget) or self._thread is None:
            return False
        job.slices += 1
        with self._entry:
            if job.slices >= self._slices_max or self._is_stopped:
                return False
            self._waiting.put(job)
        return True

    def _prepare_reply(self, job: _Job[Answer], result: Result) -> Callable[[], None]:
        """Return what tells of an act that was done, or could not be."""
        assert job.act is not None
        self._accepted += not isinstance(result, Exception)
        try:
            answer = job.act.answer(result)
        except Exception as error:  # noqa: BLE001  # as above
            return partial(_fail, [job], error)
        return partial(_answer, job, answer)

    def _commit(self, jobs: list[_Job[Any]]) -> list[_Job[Any]]:
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
            self._silence.note(error)
            self._tell(error)
            _fail(jobs, error)
            return []
        self._tell(None)
        beaten = []
        for job, refusal in zip(jobs, refusals, strict=True):
            assert job.plan is not None
            job.attempts += 1
            if refusal is None:
                self._accepted += 1
                self._tell_listeners(job.plan)
                _answer(job, job.plan.answer)
            elif refusal.is_final and not job.plan.reads_work:
                _fail([job], Conflict(f"{refusal.work} was changed meanwhile: nothing was written"))
            elif job.attempts <= self._retries:
                metrics.CONFLICTS.inc()
                beaten.append(job)
            else:
                text = f"others were faster {job.attempts} times ({refusal.kind} {refusal.table}); try again"
                _fail([job], Conflict(text, code=GENERATION_CODE))
        return beaten

    def _select_retries(self, jobs: list[_Job[Any]], error: StoreReplaced) -> list[_Job[Any]]:
        """Return the jobs that may be planned again on another database, where nothing of them is; fail the others."""
        for job in jobs:
            job.attempts += 1
        _fail([job for job in jobs if job.attempts > self._retries], error)
        return [job for job in jobs if job.attempts <= self._retries]

    def _tell_listeners(self, plan: Plan[Any]) -> None:
        """Tell whoever listens of a plan that is durable; it stays so, whatever they do."""
        if plan.told is not None:
            call_listener("told", plan.told)
        if plan.work and self._heed is not None:
            call_listener("heed", partial(self._heed, plan.work))

    def _tell(self, error: Exception | None) -> None:
        """Let the log know when the database begins to fail, and how, and when it takes a write again."""
        trouble = type(error) if isinstance(error, Unavailable) else None
        if trouble is not self._trouble:
            self._trouble = trouble
            # The words of one kind of trouble change from one attempt to connect to the next.
            if trouble is None:
                log.event("database_is_well")
            else:
                log.event("database_fails", problem=str(error))

    def _write(self, jobs: list[_Job[Any]]) -> list[Refusal | None]:
        plans = [job.plan for job in jobs if job.plan is not None]
        creating = [plan.create for plan in plans if plan.create is not None]
        if not creating:
            return self._current.commit([Item(writes=plan.writes, work=plan.work) for plan in plans])
        assert len(creating) == len(plans), "a phase creates or does not"
        with self._current.creating(plans[0].creates, len(creating)) as first:
            return self._current.commit([Item(writes=create(first + at)) for at, create in enumerate(creating)])


def call_listener(name: str, listen: Callable[[], None]) -> None:
    """Let somebody hear of something; that it fails is logged and counted, and nobody else's concern."""
    try:
        listen()
    except Exception as error:  # noqa: BLE001  # whoever told it goes on
        metrics.LISTENERS_FAILED.inc()
        log.fault(name, error)


def _answer(job: _Job[Answer], result: Answer) -> None:
    job.is_answered = True
    try:
        job.outcome.set_result(result)
    except Exception as error:  # noqa: BLE001  # whoever waited is gone, with the loop it waited on
        log.fault("answer", error)


def _fail(jobs: Sequence[_Job[Any]], error: Exception) -> None:
    """Tell whoever was not answered that it went wrong."""
    if not isinstance(error, RoostError) or isinstance(error, Unavailable):
        metrics.FAULTS.inc()
    for job in jobs:
        if job.is_answered:
            continue
        job.is_answered = True
        try:
            job.outcome.set_exception(error)
        except Exception as other:  # noqa: BLE001  # as above
            log.fault("answer", other)


def _phases(jobs: list[_Job[Any]]) -> list[list[_Job[Any]]]:
    """Tell claims, which share few statements, from other writes, from work, and from what is created in turn.

    Claims come after the other writes: these name generations, which claims raise, and claims name none.
    """
    phases: tuple[list[_Job[Any]], ...] = ([], [], [], [], [])
    for job in jobs:
        assert job.plan is not None
        if job.plan.create is not None:
            assert not job.plan.work, "what is created comes without work"
            phases[3 if job.plan.creates == "provider" else 4].append(job)
        elif job.plan.work:
            phases[2].append(job)
        elif all(isinstance(write, Claim | Release) for write in job.plan.writes):
            phases[1].append(job)
        else:
            phases[0].append(job)
    return [phase for phase in phases if phase]
