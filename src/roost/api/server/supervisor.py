"""A parent process that keeps worker processes alive."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import uvloop

from roost.api.health.readiness import CheckResult, ReadinessReport
from roost.api.server.listener import EXIT_CODE_BASE, STOP_SIGNALS, Server
from roost.errors import RoostError
from roost.observe import exposition, log

_DELAY_S = 0.1
_DELAY_S_MAX = 10.0
# Lifetime of a worker after which its restart delay is reset.
_STABLE_S = 60.0
# Seconds for workers to end, in addition to the time for their requests.
_GRACE_S = 5.0
_READY = "ready"
_STARTING = "starting"


class ParentPipe:
    """The worker's end of the pipe to its parent."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._reported = ("", "")

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the parent stops the worker, or has ended."""
        return self._pipe.fileno()

    def report(self, problem: str | None, *, unready: str = "") -> None:
        """Report health or a problem, and readiness, unless both equal the last report."""
        state = problem or _READY
        if (state, unready) != self._reported:
            self._reported = state, unready
            self.send((state, 0, unready))

    def send(self, message: tuple[str, int, str]) -> None:
        """Send a state, an exit code for an error at the start, and the reason why the worker is not ready."""
        try:
            self._pipe.send(message)
        except OSError:
            return  # The parent has ended, which ``fileno`` signals.


class _Worker:
    """A slot for a worker process."""

    def __init__(self) -> None:
        self.process: multiprocessing.process.BaseProcess | None = None
        self.pipe: Connection | None = None
        self.problem: str | None = _STARTING
        self.unready = _STARTING  # why it is not ready; empty: it is
        self.was_ready = False
        self.is_reloaded = False  # whether it got the signal for changed settings
        self.delay_s = _DELAY_S
        self.begun_s = 0.0


class Supervisor:
    """Keeps workers alive.

    Args:
        work: an importable function; it gets the arguments and ``parent``, and works until the parent stops it.
        arguments: arguments of ``work``, in pickled form for the worker.
        count: number of workers, >= 1.
        stop_timeout_s: time for requests to finish.
        on_ready: called once, when all workers are ready.
    """

    def __init__(
        self,
        work: Callable[..., None],
        arguments: Sequence[Any],
        *,
        count: int,
        stop_timeout_s: float,
        on_ready: Callable[[], None],
    ) -> None:
        self._work, self._arguments = work, tuple(arguments)
        self._workers = [_Worker() for _ in range(count)]
        self._stop_timeout_s = stop_timeout_s
        self._on_ready = on_ready
        self._context = multiprocessing.get_context("spawn")
        self._is_stopping = False
        self._is_changed = False  # whether settings changed since the start
        self._failure: RoostError | None = None
        self._ended = asyncio.Event()

    def run(self, *servers: Server) -> None:
        """Supervise until a signal stops all workers; a second signal kills them.

        Args:
            servers: servers in this process, which run meanwhile.

        Raises:
            RoostError: a worker cannot start at all.
        """
        uvloop.run(self._run(servers))
        if self._failure is not None:
            raise self._failure

    async def health(self) -> str | None:
        """Return the problem of the first worker, if none is healthy."""
        problems = [worker.problem for worker in self._workers]
        return None if None in problems else f"no worker is healthy: {problems[0]}"

    async def readiness(self) -> ReadinessReport:
        """Return whether at least one worker is ready."""
        reasons = [worker.problem or worker.unready for worker in self._workers]
        ready_count = reasons.count("")
        detail = f"{ready_count} of {len(reasons)} workers are ready"
        problem = next(filter(None, reasons), "")
        return ReadinessReport(
            {"workers": CheckResult(ok=ready_count > 0, detail=f"{detail}: {problem}" if problem else detail)}
        )

    async def _run(self, servers: Sequence[Server]) -> None:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._handle_signal, number)
        loop.add_signal_handler(signal.SIGHUP, self._reload_all)
        for worker in self._workers:
            self._start(worker)
        answering = [loop.create_task(server.answer()) for server in servers]
        await self._ended.wait()
        for server in servers:
            server.stop()
        await asyncio.gather(*answering)

    def _start(self, worker: _Worker) -> None:
        loop = asyncio.get_running_loop()
        worker.pipe, child_pipe = self._context.Pipe()
        worker.process = self._context.Process(
            target=_main, args=(self._work, self._arguments, child_pipe), name="roost-worker"
        )
        worker.problem, worker.begun_s, worker.is_reloaded = _STARTING, loop.time(), False
        worker.unready = _STARTING
        worker.process.start()
        child_pipe.close()
        loop.add_reader(worker.pipe.fileno(), self._receive, worker)
        loop.add_reader(worker.process.sentinel, self._handle_exit, worker)

    def _receive(self, worker: _Worker) -> bool:
        """Receive one message of a worker; return whether there was one."""
        assert worker.pipe is not None
        try:
            state, exit_code, worker.unready = worker.pipe.recv()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(worker.pipe.fileno())
            return False
        worker.problem = None if state == _READY else state
        if exit_code and not worker.was_ready and not self._is_stopping:
            self._failure = RoostError(state)
            self._failure.exit_code = exit_code
            self._stop()
        if worker.problem is None and self._is_changed and not worker.is_reloaded:
            self._reload(worker)  # It started with the old settings of this process.
        if worker.problem is None and not worker.was_ready:
            worker.was_ready = True
            if all(each.was_ready for each in self._workers):
                self._on_ready()
        return True

    def _handle_exit(self, worker: _Worker) -> None:
        """Record the end of a worker, and restart it unless the supervisor is stopping."""
        loop = asyncio.get_running_loop()
        process, pipe = worker.process, worker.pipe
        assert process is not None
        assert pipe is not None
        loop.remove_reader(process.sentinel)
        while self._receive(worker):
            pass
        pipe.close()
        process.join()
        exposition.forget(process.pid or 0)
        problem, exit_code = worker.problem, process.exitcode
        worker.process, worker.pipe, worker.problem = None, None, "it has ended and restarts"
        if self._is_stopping:
            if all(each.process is None for each in self._workers):
                self._ended.set()
            return
        if loop.time() - worker.begun_s > _STABLE_S:
            worker.delay_s = _DELAY_S
        log.event("worker_ended", exit_code=exit_code, problem=problem, begins_again_in_s=worker.delay_s)
        loop.call_later(worker.delay_s, self._start_again, worker)
        worker.delay_s = min(2 * worker.delay_s, _DELAY_S_MAX)

    def _start_again(self, worker: _Worker) -> None:
        if not self._is_stopping:
            self._start(worker)

    def _reload_all(self) -> None:
        """Make all workers reread the settings, including workers that start later."""
        self._is_changed = True
        for worker in self._workers:
            self._reload(worker)

    def _reload(self, worker: _Worker) -> None:
        # A worker may not handle signals until it has sent its first report: the signal would end it.
        if worker.process is not None and worker.process.pid is not None and worker.problem != _STARTING:
            worker.is_reloaded = True
            with suppress(ProcessLookupError):  # It may just have ended.
                os.kill(worker.process.pid, signal.SIGHUP)

    def _handle_signal(self, number: int) -> None:
        if self._is_stopping:
            self._kill()
            os._exit(EXIT_CODE_BASE + number)
        self._stop()

    def _stop(self) -> None:
        """Make all workers finish their requests and end: a message in the pipe stops them."""
        self._is_stopping = True
        loop = asyncio.get_running_loop()
        for worker in self._workers:
            if worker.pipe is not None:
                with suppress(OSError):  # It may just have ended.
                    worker.pipe.send(None)
        loop.call_later(self._stop_timeout_s + _GRACE_S, self._kill)
        if all(worker.process is None for worker in self._workers):
            self._ended.set()

    def _kill(self) -> None:
        for worker in self._workers:
            if worker.process is not None:
                worker.process.kill()


def _main(work: Callable[..., None], arguments: Sequence[Any], pipe: Connection) -> None:
    """Run a worker; report an error at the start to the parent."""
    # Only the parent handles signals until the worker does so itself.
    for number in (*STOP_SIGNALS, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent = ParentPipe(pipe)
    try:
        work(*arguments, parent=parent)
    except RoostError as error:
        parent.send((str(error), error.exit_code, str(error)))
        raise SystemExit(error.exit_code) from None
