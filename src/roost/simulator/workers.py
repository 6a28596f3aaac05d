"""Runs side by side, each in a process of its own, which ends with it and gives all memory back."""

import multiprocessing
import signal
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from roost.errors import RoostError
from roost.simulator.replay import Progress
from roost.simulator.runs import Run, execute

_PROGRESS_S = 0.5  # at least so often the caller is asked whether to go on

# What a worker says: acts done and acts in all, or what ended it.
_Message = tuple[int, int] | RoostError | str | None


def run_all(runs: Sequence[Run], *, jobs: int, progress: Progress | None = None) -> None:
    """Do the runs, several at a time; each has written its result when it ends.

    Args:
        jobs: processes, >= 1; one run at a time is done in this process.
        progress: told the acts done and expected of all runs; what it raises ends the work.

    Raises:
        RoostError: what the first run that failed said; the others are stopped, finished ones keep their results.
    """
    progress_sum = _ProgressSum(len(runs), progress)
    if jobs == 1 or len(runs) == 1:
        for place, run in enumerate(runs):
            execute(run, progress_sum.reporter(place))
        return
    waiting = deque(enumerate(runs))
    busy: dict[Connection, _Worker] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                place, run = waiting.popleft()
                worker = _Worker(run, progress_sum.reporter(place))
                busy[worker.reader] = worker
            for reader in connection.wait(list(busy), timeout=_PROGRESS_S):
                assert isinstance(reader, Connection)
                if busy[reader].has_ended():
                    del busy[reader]
            progress_sum.report()
    finally:
        for worker in busy.values():
            worker.stop()


class _Worker:
    """A process that does one run."""

    def __init__(self, run: Run, progress: Progress) -> None:
        self._run = run
        self._progress = progress
        context = multiprocessing.get_context("spawn")  # A copy of this process would have its threads' locks.
        self.reader, writer = context.Pipe(duplex=False)
        self._process: SpawnProcess = context.Process(target=_serve, args=(run, writer), daemon=True)
        with _block_interrupts():
            self._process.start()
        writer.close()

    def has_ended(self) -> bool:
        """Take one message; say whether it was the last.

        Raises:
            RoostError: the run failed, or its process died.
        """
        try:
            message: _Message = self.reader.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            raise RoostError(f"the run of {self._run} ended without a result (its process with {code})") from None
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
        """End the process, wherever it is."""
        self._process.terminate()
        self._process.join()


class _ProgressSum:
    """What is known of the acts of all runs."""

    def __init__(self, runs: int, progress: Progress | None) -> None:
        self._runs = runs
        self._progress = progress
        self._by_run: dict[int, tuple[int, int]] = {}

    def reporter(self, place: int) -> Progress:
        """Return what one run tells its progress to."""

        def record(done: int, total: int) -> None:
            self._by_run[place] = done, total
            self.report()

        return record

    def report(self) -> None:
        """Pass on the sums; runs that have not said how many acts they have are taken for average ones."""
        if self._progress is not None and self._by_run:
            done, total = (sum(column) for column in zip(*self._by_run.values(), strict=True))
            self._progress(done, total * self._runs // len(self._by_run))


def _serve(run: Run, writer: Connection) -> None:
    """Do a run in a worker."""
    with suppress(BrokenPipeError):  # Then nobody waits for this run any more.
        message: _Message = None
        try:
            execute(run, lambda done, total: writer.send((done, total)))
        except RoostError as error:
            message = error
        except BrokenPipeError:
            raise
        except Exception:  # noqa: BLE001  # whoever waits must see where it was
            message = traceback.format_exc()
        writer.send(message)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Let what is started here not hear Ctrl-C, which a terminal sends to all: whoever started it ends it."""
    resource_tracker.ensure_running()  # It is started with the first process otherwise, and opens our ears again.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
