"""The server's side of the reader process: fair queueing of questions, and their answers."""

import asyncio
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import msgspec

from roost.api.http import Request, Response
from roost.errors import OverBudget, Unavailable
from roost.model.question import (
    FRAME_HEAD,
    Answer,
    Ask,
    Asker,
    Cancel,
    Failure,
    FromReader,
    NewSettings,
    Ready,
    Start,
    ToReader,
)
from roost.model.settings.roost_settings import Settings
from roost.observe import log, metrics
from roost.observe.metrics_folder import environment_without_metrics

_MODULE = "roost.app.reader_process"
# Maximum number of questions in progress, and maximum number of lists in progress. Each occupies a processor.
_RUNNING_MAX = 2
# Maximum number of waiting questions, in all and per identity. All processes of Nova are one identity.
_WAITING_MAX = 64
_EACH_MAX = 32
# Share of ``request_timeout_s`` for a full scan; the rest is for sending the answer.
_SCAN_PART = 0.9
# Minimum seconds between two starts of the process.
_RESTART_PAUSE_S = 1.0
# With at least this number of hosts, the process starts before the first question: loading the columns takes long.
_LARGE_FLEET = 1_000

_decoder = msgspec.msgpack.Decoder(FromReader)


class Turns:
    """Fair queueing: a bounded number of questions in progress; identities with waiting questions take turns.

    Args:
        running_max: maximum number of questions in progress, >= 1.
        waiting_max, each_max: maximum number of waiting questions, in all and per identity, >= 0.
    """

    def __init__(
        self, running_max: int = _RUNNING_MAX, *, waiting_max: int = _WAITING_MAX, each_max: int = _EACH_MAX
    ) -> None:
        self._free = running_max
        self._waiting_max, self._each_max = waiting_max, each_max
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn; it ends with the context.

        Raises:
            Unavailable: too many questions wait already.
        """
        await self._acquire(owner)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, owner: str) -> None:
        if self._free:
            self._free -= 1
            return
        own, total = len(self._waiting.get(owner, ())), sum(map(len, self._waiting.values()))
        if own >= self._each_max:
            raise Unavailable(f"{own} long questions of this identity are waiting; try again")
        if total >= self._waiting_max:
            raise Unavailable(f"{total} long questions are waiting; try again")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()
            raise

    def _release(self) -> None:
        while self._waiting:
            owner = next(iter(self._waiting))
            turns = deque(turn for turn in self._waiting.pop(owner) if not turn.done())
            if turns:
                turns.popleft().set_result(None)
                if turns:
                    self._waiting[owner] = turns  # Behind all other identities.
                return
        self._free += 1


class _Link:
    """A reader process, and its pending questions."""

    def __init__(self, process: subprocess.Popen[bytes], writer: asyncio.StreamWriter) -> None:
        self.process = process
        self.pending: dict[int, asyncio.Future[Answer]] = {}
        self.settings: Settings | None = None  # the last settings that it received
        self.problem = ""  # the reason of its end
        self.is_ready = False  # whether the process has loaded the columns
        self._writer = writer

    def send(self, message: ToReader) -> None:
        body = msgspec.msgpack.encode(message)
        self._writer.write(len(body).to_bytes(FRAME_HEAD, "big") + body)

    async def listen(self, reader: asyncio.StreamReader) -> None:
        """Deliver answers until the process ends."""
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(FRAME_HEAD), "big")
                self._deliver(_decoder.decode(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.problem = self.problem or "the reader process has ended; try again"
        finally:
            for future in self.pending.values():
                if not future.done():
                    future.set_exception(Unavailable(self.problem or "the server is stopping"))
            self.process.poll()
            self._writer.close()

    def _deliver(self, message: FromReader) -> None:
        if isinstance(message, Ready):
            self.is_ready = True
            return
        if message.number == 0 and isinstance(message, Failure):
            self.problem = message.problem
            log.event("reader_cannot_start", problem=message.problem)
            return
        future = self.pending.get(message.number)
        if future is None or future.done():
            return
        if isinstance(message, Answer):
            future.set_result(message)
        elif message.is_over_budget:
            future.set_exception(OverBudgetInReader())
        else:
            future.set_exception(Unavailable(message.problem))


class OverBudgetInReader(Exception):
    """The reader stopped a question whose budget was used up."""


class ReaderClient:
    """Sends questions to the reader process, which starts with the first question or with ``keep_ready``.

    Args:
        url: of the database.
        settings: returns the settings in force.
        has_own_api: whether /v1 is served.
    """

    def __init__(self, url: str, *, settings: Callable[[], Settings], has_own_api: bool) -> None:
        self._url = url
        self._settings = settings
        self._has_own_api = has_own_api
        self._turns, self._list_turns = Turns(), Turns()
        self._link: _Link | None = None
        self._listening: asyncio.Task[None] | None = None
        self._started_s = -_RESTART_PAUSE_S
        self._number = 0
        self._starting = asyncio.Lock()
        self._preparing: asyncio.Task[None] | None = None

    async def keep_ready(self, host_count: int) -> None:
        """Start the process if the fleet is so large that the first question would wait for its columns.

        Args:
            host_count: number of hosts of the fleet.
        """
        if host_count >= _LARGE_FLEET:
            await self._start()

    @property
    def is_ready(self) -> bool:
        """Whether the process has loaded the columns, and answers at once."""
        return self._link is not None and self._link.is_ready and not self._link.problem

    def prepare(self) -> None:
        """Start the process in the background."""
        if self._preparing is None or self._preparing.done():
            self._preparing = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> None:
        with suppress(Unavailable):  # It has just ended; a later call tries again.
            await self._connect()

    async def forward(self, request: Request, *, is_own_api: bool) -> Response:
        """Return the response to an authenticated request.

        Raises:
            OverBudget: the work took too long, or too much memory.
            Unavailable: too many questions wait, or the reader does not answer.
        """
        identity = request.identity
        assert identity is not None, "unknown clients are refused before"
        turns = self._list_turns if request.work == "list" else self._turns
        async with turns.turn(f"{identity.user_id}\0{identity.project_id}"):
            settings = self._settings().placement
            limit = "request_timeout_s" if request.work == "scan" else "question_budget_s"
            budget_s = _SCAN_PART * settings.request_timeout_s if request.work == "scan" else settings.question_budget_s
            self._number += 1
            question = Ask(
                number=self._number,
                is_own_api=is_own_api,
                budget_s=budget_s,
                method=request.method,
                path=request.path,
                query_string=request.query_string,
                headers=dict(request.headers),
                body=request.body,
                prefix=request.prefix,
                host_url=request.host_url,
                request_id=request.request_id,
                asker=Asker(
                    user_id=identity.user_id,
                    project_id=identity.project_id,
                    roles=identity.roles,
                    is_system_scoped=identity.is_system_scoped,
                    hosts=identity.hosts,
                ),
            )
            metrics.QUESTIONS_READ.inc()
            try:
                answer = await self._answer(await self._connect(), question)
            except OverBudgetInReader:
                raise OverBudget("the work on this request", seconds=budget_s, limit=f"placement.{limit}") from None
            return Response(status=answer.status, body=answer.body, headers=answer.headers)

    async def _answer(self, link: _Link, question: Ask) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        link.pending[question.number] = future
        settings = self._settings()
        if link.settings is not settings:
            link.send(NewSettings(settings=settings))
            link.settings = settings
        link.send(question)
        try:
            return await future
        except asyncio.CancelledError:
            link.send(Cancel(number=question.number))
            raise
        finally:
            del link.pending[question.number]

    async def _connect(self) -> _Link:
        async with self._starting:
            return await self._connect_under_lock()

    async def _connect_under_lock(self) -> _Link:
        if self._link is not None and self._listening is not None and not self._listening.done():
            return self._link
        now_s = time.monotonic()
        if now_s - self._started_s < _RESTART_PAUSE_S:
            raise Unavailable((self._link and self._link.problem) or "the reader process is being started; try again")
        self._started_s = now_s
        own_socket, child_socket = socket.socketpair()
        with child_socket:
            command = [sys.executable, "-P", "-m", _MODULE, str(child_socket.fileno())]
            process = subprocess.Popen(  # noqa: S603, ASYNC220  # our own module; the call does not wait for it
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[child_socket.fileno()],
                env=environment_without_metrics(),
            )
        reader, writer = await asyncio.open_connection(sock=own_socket)
        link = self._link = _Link(process, writer)
        link.settings = self._settings()
        link.send(Start(url=self._url, settings=link.settings, has_own_api=self._has_own_api))
        self._listening = asyncio.create_task(link.listen(reader))
        return link

    def close(self) -> None:
        """End the reader process; only after the end of the event loop."""
        if self._link is not None:
            self._link.process.kill()
            self._link.process.wait()
            self._link = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiReader:
    """The reader process, for the requests of one API."""

    client: ReaderClient
    is_own_api: bool  # /v1; otherwise the Placement API

    @property
    def is_ready(self) -> bool:
        """See ``ReaderClient.is_ready``."""
        return self.client.is_ready

    def prepare(self) -> None:
        """See ``ReaderClient.prepare``."""
        self.client.prepare()

    async def forward(self, request: Request) -> Response:
        """See ``ReaderClient.forward``."""
        return await self.client.forward(request, is_own_api=self.is_own_api)
