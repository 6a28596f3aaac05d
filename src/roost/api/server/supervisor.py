"""A parent process that keeps worker processes alive, and replaces them on request."""

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
from roost.errors import RoostError, first_line
from roost.observe import exposition, log

_DELAY_S = 0.1
_DELAY_S_MAX = 10.0
# Lifetime of a worker after which its restart delay is reset.
_STABLE_S = 60.0
# Seconds for workers to end, in addition to the time for their requests.
_GRACE_S = 5.0
# Limit of the start of a worker that replaces another: it reads the whole fleet.
_START_S_MAX = 600.0
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
        self.is_kept = True  # whether it starts again after its end
        self.delay_s = _DELAY_S
        self.begun_s = 0.0
        self.ready, self.ended = asyncio.Event(), asyncio.Event()


class Supervisor:
    """Keeps workers alive.

    Args:
        work: an importable function; it gets the arguments and ``parent``, and works until the parent stops it.
        read_arguments: returns the arguments of ``work``, at the start and at SIGHUP; a worker gets them pickled.
        count: number of workers, >= 1.
        stop_timeout_s: time for requests to finish.
        on_ready: called once, when all workers are ready.
    """

    def __init__(
        self,
        work: Callable[..., None],
        read_arguments: Callable[[], Sequence[Any]],
        *,
        count: int,
        stop_timeout_s: float,
        on_ready: Callable[[], None],
    ) -> None:
        self._work, self._read_arguments = work, read_arguments
        self._arguments = tuple(read_arguments())
        self._workers = [_Worker() for _ in range(count)]
        self._stop_timeout_s = stop_timeout_s
        self._on_ready = on_ready
        self._context = multiprocessing.get_context("spawn")
        self._is_stopping = False
        self._is_announced = False  # whether all workers have been ready
        self._is_replacement_due = False
        self._replacing: asyncio.Task[None] | None = None
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
        loop.add_signal_handler(signal.SIGHUP, self._renew)
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
        worker.problem, worker.begun_s = _STARTING, loop.time()
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
        if exit_code and not worker.was_ready and worker.is_kept and not self._is_stopping:
            self._failure = RoostError(state)
            self._failure.exit_code = exit_code
            self._stop()
        if worker.problem is None and not worker.was_ready:
            worker.was_ready = True
            if not self._is_announced and all(each.was_ready for each in self._workers):
                self._is_announced = True
                self._on_ready()
                self._replace_if_due()
        if not worker.problem and not worker.unready:
            worker.ready.set()
        return True

    def _handle_exit(self, worker: _Worker) -> None:
        """Record the end of a worker, and restart it if it is kept and the supervisor is not stopping."""
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
        worker.process, worker.pipe = None, None
        worker.ended.set()
        if self._is_stopping:
            self._end_if_done()
            return
        if not worker.is_kept:
            return
        worker.problem = "it has ended and restarts"
        if loop.time() - worker.begun_s > _STABLE_S:
            worker.delay_s = _DELAY_S
        log.event("worker_ended", exit_code=exit_code, problem=problem, begins_again_in_s=worker.delay_s)
        loop.call_later(worker.delay_s, self._start_again, worker)
        worker.delay_s = min(2 * worker.delay_s, _DELAY_S_MAX)

    def _start_again(self, worker: _Worker) -> None:
        if worker.is_kept and not self._is_stopping:
            self._start(worker)

    def _renew(self) -> None:
        """Read the arguments again. Make workers reread their settings, then replace all workers, one at a time."""
        try:
            self._arguments = tuple(self._read_arguments())
        except RoostError as error:
            log.event("settings_refused", error=str(error), process=os.getpid())
            return
        except OSError as error:
            log.event("settings_refused", error=first_line(error), process=os.getpid())
            return
        for worker in self._workers:
            # A worker may not handle signals until it has sent its first report: the signal would end it.
            if worker.process is not None and worker.process.pid is not None and worker.problem != _STARTING:
                with suppress(ProcessLookupError):  # It may just have ended.
                    os.kill(worker.process.pid, signal.SIGHUP)
        self._is_replacement_due = True
        self._replace_if_due()

    def _replace_if_due(self) -> None:
        """Begin to replace all workers if requested, unless a replacement runs or no worker has been ready."""
        is_running = self._replacing is not None and not self._replacing.done()
        if self._is_replacement_due and self._is_announced and not is_running:
            self._replacing = asyncio.get_running_loop().create_task(self._replace_all())

    async def _replace_all(self) -> None:
        """Replace workers one after the other, until one of them fails."""
        while self._is_replacement_due:
            self._is_replacement_due = False
            old = tuple(self._workers)
            for at, worker in enumerate(old):
                problem = await self._replace(worker)
                if self._is_stopping:
                    return
                if problem is not None:
                    log.event("worker_not_replaced", problem=problem, replaced=at, count=len(old))
                    break
            else:
                log.event("workers_replaced", count=len(old))

    async def _replace(self, old: _Worker) -> str | None:
        """Start a worker; once it is ready, stop the old one. Return the problem of a new one that does not start."""
        new = _Worker()
        new.is_kept = False
        self._workers.append(new)
        try:
            self._start(new)
        except OSError as error:
            self._workers.remove(new)
            return first_line(error)
        await _wait_for_any(new.ready, new.ended, limit_s=_START_S_MAX)
        if self._is_stopping:
            return None
        if new.process is None or not new.ready.is_set():
            problem = new.problem or new.unready
            await self._retire(new)
            return problem
        new.is_kept = True
        await self._retire(old)
        return None

    async def _retire(self, worker: _Worker) -> None:
        """Stop a worker after its requests, and forget it."""
        worker.is_kept = False
        if worker.process is not None:
            worker.ended.clear()
            self._stop_worker(worker)
            await _wait_for_any(worker.ended, limit_s=self._stop_timeout_s + _GRACE_S)
            if worker.process is not None:
                worker.process.kill()
                await worker.ended.wait()
        if not self._is_stopping:
            self._workers.remove(worker)

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
            self._stop_worker(worker)
            worker.ready.set()  # ``_replace`` ends.
        loop.call_later(self._stop_timeout_s + _GRACE_S, self._kill)
        self._end_if_done()

    def _stop_worker(self, worker: _Worker) -> None:
        if worker.pipe is not None:
            with suppress(OSError):  # It may just have ended.
                worker.pipe.send(None)

    def _end_if_done(self) -> None:
        if all(worker.process is None for worker in self._workers):
            self._ended.set()

    def _kill(self) -> None:
        for worker in self._workers:
            if worker.process is not None:
                worker.process.kill()


async def _wait_for_any(*events: asyncio.Event, limit_s: float) -> None:
    """Wait until one of some events is set, or until the limit."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


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
