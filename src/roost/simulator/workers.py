"""Parallel runs, each in a process of its own, so that its memory is freed when it ends."""

import multiprocessing
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Generic, TypeVar

from roost.errors import RoostError
from roost.simulator.replay import Progress

_PROGRESS_S = 0.5  # longest interval between progress calls; the callback can end the work by an exception

# A message of a worker: finished acts and all acts; or its end, with the error if it failed.
_Message = tuple[int, int] | RoostError | str | None
_Run = TypeVar("_Run")
Execute = Callable[[_Run, Progress | None], None]


def run_all(runs: Sequence[_Run], execute: Execute[_Run], *, jobs: int, progress: Progress | None = None) -> None:
    """Execute runs in parallel; each writes its result before it ends.

    Args:
        runs: values with a text form; they are sent to other processes.
        execute: executes one run; a function of a module.
        jobs: parallel processes, >= 1; with 1 job or 1 run, this process executes the runs.
        progress: called with the finished and expected requests of all runs; its exception ends the work.

    Raises:
        RoostError: the error of the first failed run; others are stopped, and finished runs keep their results.
    """
    progress_sum = _ProgressSum(len(runs), progress)
    if jobs == 1 or len(runs) == 1:
        for place, run in enumerate(runs):
            execute(run, progress_sum.reporter(place))
        return
    waiting = deque(enumerate(runs))
    busy: dict[Connection, _Worker[_Run]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                place, run = waiting.popleft()
                worker = _Worker(run, execute, progress_sum.reporter(place))
                busy[worker.reader] = worker
            for reader in connection.wait(list(busy), timeout=_PROGRESS_S):
                assert isinstance(reader, Connection)
                if busy[reader].has_ended():
                    del busy[reader]
            progress_sum.report()
    finally:
        for worker in busy.values():
            worker.stop()


class _Worker(Generic[_Run]):
    """A process for one run."""

    def __init__(self, run: _Run, execute: Execute[_Run], progress: Progress) -> None:
        self._run = run
        self._progress = progress
        context = multiprocessing.get_context("spawn")  # A fork would inherit the locks of this process's threads.
        self.reader, writer = context.Pipe(duplex=False)
        self._process: SpawnProcess = context.Process(target=_serve, args=(run, execute, writer), daemon=True)
        with _block_interrupts():
            self._process.start()
        writer.close()

    def has_ended(self) -> bool:
        """Receive one message; return whether it was the last.

        Raises:
            RoostError: the run failed, or its process died.
        """
        try:
            message: _Message = self.reader.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            raise RoostError(
                f"the run of {self._run} ended without a result: its process exited with code {code}"
            ) from None
        if isinstance(message, tuple):
            self._progress(*message)
            return False
        self._process.join()
        if isinstance(message, RoostError):
            raise message
        if message is not None:
            raise AssertionError(f"the run of {self._run} failed:\n{message}")
        return True

    def stop(self) -> None:
        """Terminate the process."""
        self._process.terminate()
        self._process.join()


class _ProgressSum:
    """Progress of all runs together."""

    def __init__(self, runs: int, progress: Progress | None) -> None:
        self._runs = runs
        self._progress = progress
        self._by_run: dict[int, tuple[int, int]] = {}

    def reporter(self, place: int) -> Progress:
        """Return the progress callback of one run."""

        def record(done: int, total: int) -> None:
            self._by_run[place] = done, total
            self.report()

        return record

    def report(self) -> None:
        """Report the sums; a run without a report yet counts as an average run."""
        if self._progress is not None and self._by_run:
            done, total = (sum(column) for column in zip(*self._by_run.values(), strict=True))
            self._progress(done, total * self._runs // len(self._by_run))


def _serve(run: _Run, execute: Execute[_Run], writer: Connection) -> None:
    """Execute a run in a worker."""
    with suppress(BrokenPipeError):  # The parent has ended, and needs no result.
        message: _Message = None
        try:
            execute(run, lambda done, total: writer.send((done, total)))
        except RoostError as error:
            message = error
        except BrokenPipeError:
            raise
        except Exception:  # noqa: BLE001  # the parent needs the traceback
            message = traceback.format_exc()
        writer.send(message)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Block Ctrl-C in processes started here: a terminal sends it to all, but the parent ends its workers itself."""
    resource_tracker.ensure_running()  # Otherwise the tracker starts with the first process, and unblocks the signal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
