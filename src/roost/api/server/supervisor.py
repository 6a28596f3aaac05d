"""A parent that keeps so many worker processes alive, and ends when all have ended after it was told to stop."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import uvloop

from roost.api.server.listener import EXIT_CODE_BASE, STOP_SIGNALS, Server
from roost.errors import RoostError
from roost.observe import log, metrics

_DELAY_S = 0.1
_DELAY_S_MAX = 10.0
# A worker that lived for so long did not die of how it was started.
_STABLE_S = 60.0
# What workers get on top of the time that requests have to finish.
_GRACE_S = 5.0
_READY = "ready"
_STARTING = "starting"


class ParentPipe:
    """What a worker tells its parent, and hears of it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._reported: str | None = None

    def fileno(self) -> int:
        """Return what becomes readable when the parent says stop, or is gone."""
        return self._pipe.fileno()

    def report(self, problem: str | None) -> None:
        """Tell that all is well, or what is not; what was said last is not repeated."""
        word = problem or _READY
        if word != self._reported:
            self._reported = word
            self.send((word, 0))

    def send(self, message: tuple[str, int]) -> None:
        """Send a word, and where it is an error before anything was well, its exit code."""
        try:
            self._pipe.send(message)
        except OSError:
            return  # It is gone, and ``fileno`` says so.


class _Worker:
    """One place in which a worker runs, or is about to."""

    def __init__(self) -> None:
        self.process: multiprocessing.process.BaseProcess | None = None
        self.pipe: Connection | None = None
        self.problem: str | None = _STARTING
        self.was_ready = False
        self.is_reloaded = False  # that the settings are others than at the start
        self.delay_s = _DELAY_S
        self.begun_s = 0.0


class Supervisor:
    """Keeps workers alive.

    Args:
        work: what each does, until its parent says stop: a function that other processes can import, too. It is
            handed the arguments, and ``parent``.
        arguments: they are pickled.
        count: of workers, >= 1.
        stop_timeout_s: how long requests have to finish.
        on_ready: called once, when every worker has been ready.
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
        self._is_changed = False  # whether somebody said that the settings are others than at the start
        self._failure: RoostError | None = None
        self._ended = asyncio.Event()

    def run(self, *servers: Server) -> None:
        """Supervise until a signal says stop and all have ended; a second signal ends all at once.

        Args:
            servers: that this process itself answers with meanwhile.

        Raises:
            RoostError: what kept a worker from starting at all.
        """
        uvloop.run(self._run(servers))
        if self._failure is not None:
            raise self._failure

    async def health(self) -> str | None:
        """Say what is wrong, if no worker is well."""
        problems = [worker.problem for worker in self._workers]
        return None if None in problems else f"no worker is well: {problems[0]}"

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
        worker.pipe, theirs = self._context.Pipe()
        worker.process = self._context.Process(
            target=_main, args=(self._work, self._arguments, theirs), name="roost-worker"
        )
        worker.problem, worker.begun_s, worker.is_reloaded = _STARTING, loop.time(), False
        worker.process.start()
        theirs.close()
        loop.add_reader(worker.pipe.fileno(), self._receive, worker)
        loop.add_reader(worker.process.sentinel, self._handle_exit, worker)

    def _receive(self, worker: _Worker) -> bool:
        """Take one message of a worker; say whether there was one."""
        assert worker.pipe is not None
        try:
            word, exit_code = worker.pipe.recv()
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(worker.pipe.fileno())
            return False
        worker.problem = None if word == _READY else word
        if exit_code and not worker.was_ready and not self._is_stopping:
            self._failure = RoostError(word)
            self._failure.exit_code = exit_code
            self._stop()
        if worker.problem is None and self._is_changed and not worker.is_reloaded:
            self._reload(worker)  # It began with the settings that this process was started with.
        if worker.problem is None and not worker.was_ready:
            worker.was_ready = True
            if all(each.was_ready for each in self._workers):
                self._on_ready()
        return True

    def _handle_exit(self, worker: _Worker) -> None:
        """Take note of a worker's end; let another take its place unless all are to end."""
        loop = asyncio.get_running_loop()
        process, pipe = worker.process, worker.pipe
        assert process is not None
        assert pipe is not None
        loop.remove_reader(process.sentinel)
        while self._receive(worker):
            pass
        pipe.close()
        process.join()
        metrics.forget(process.pid or 0)
        told, exit_code = worker.problem, process.exitcode
        worker.process, worker.pipe, worker.problem = None, None, "it has ended, and begins anew"
        if self._is_stopping:
            if all(each.process is None for each in self._workers):
                self._ended.set()
            return
        if loop.time() - worker.begun_s > _STABLE_S:
            worker.delay_s = _DELAY_S
        log.event("worker_ended", exit_code=exit_code, problem=told, begins_again_in_s=worker.delay_s)
        loop.call_later(worker.delay_s, self._start_again, worker)
        worker.delay_s = min(2 * worker.delay_s, _DELAY_S_MAX)

    def _start_again(self, worker: _Worker) -> None:
        if not self._is_stopping:
            self._start(worker)

    def _reload_all(self) -> None:
        """Let all workers read the settings anew, those that begin later too."""
        self._is_changed = True
        for worker in self._workers:
            self._reload(worker)

    def _reload(self, worker: _Worker) -> None:
        # Until it has been ready once, it may not listen to this signal, which would end it.
        if worker.process is not None and worker.process.pid is not None and worker.problem != _STARTING:
            worker.is_reloaded = True
            with suppress(ProcessLookupError):  # It may have ended this moment.
                os.kill(worker.process.pid, signal.SIGHUP)

    def _handle_signal(self, number: int) -> None:
        if self._is_stopping:
            self._kill()
            os._exit(EXIT_CODE_BASE + number)
        self._stop()

    def _stop(self) -> None:
        """Let all workers finish what they have begun: the end of the pipe tells them."""
        self._is_stopping = True
        loop = asyncio.get_running_loop()
        for worker in self._workers:
            if worker.pipe is not None:
                with suppress(OSError):  # It may have ended this moment.
                    worker.pipe.send(None)
        loop.call_later(self._stop_timeout_s + _GRACE_S, self._kill)
        if all(worker.process is None for worker in self._workers):
            self._ended.set()

    def _kill(self) -> None:
        for worker in self._workers:
            if worker.process is not None:
                worker.process.kill()


def _main(work: Callable[..., None], arguments: Sequence[Any], pipe: Connection) -> None:
    """Do the work of one worker; what keeps it from starting is told to the parent."""
    # Until it listens to signals itself, only the parent decides.
    for number in (*STOP_SIGNALS, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent = ParentPipe(pipe)
    try:
        work(*arguments, parent=parent)
    except RoostError as error:
        parent.send((str(error), error.exit_code))
        raise SystemExit(error.exit_code) from None
