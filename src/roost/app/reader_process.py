"""The reader process: follows the database beside the server, and answers slow questions.

.. code-block:: text

    server ──Ask──▶ reader ─▶ refresh the columns ─▶ fork ─▶ child: one question, on the columns as they are
           ◀─────────────────────── Answer ◀──────── pipe ◀─┘

A child works within its budget. The reader kills it when the budget is used up or the client has disconnected. Slow
questions therefore use neither time nor memory of the server. When the reader forks, it has one thread and no open
SQLite file, so forks are safe.
"""

import gc
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from roost.api.answer_options import options_of
from roost.api.asgi import Api
from roost.api.http import Batch, Identity, Request, Response
from roost.api.placement.application import Application as PlacementApplication
from roost.api.v1.agents.agent_registry import AgentRegistry
from roost.api.v1.agents.wakeups import ENDS, ENDS_MAX, Wakeups
from roost.api.v1.application import Application as OwnApplication
from roost.app.placement_server import placement_policy
from roost.compat.aliases import install_aliases
from roost.errors import OverBudget, RoostError, Unavailable, error_text
from roost.machine import SystemClock
from roost.model.question import (
    FRAME_HEAD,
    FRAME_MAX,
    Answer,
    Ask,
    Cancel,
    Failure,
    FromReader,
    NewSettings,
    Ready,
    Start,
    ToReader,
)
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.past_base import PastBase
from roost.placement.write_plan import Act, Again, Plan
from roost.product import Roost
from roost.store.backends import open_follower, open_reader
from roost.store.reader import ReadingStore

# Seconds from the end of a child's budget until the reader kills it.
_GRACE_S = 0.5
# Seconds between reads of changes while idle, so that few changes are left to read for the next question.
_IDLE_S = 5.0
_CHUNK = 1 << 20  # bytes of one read
# Decisions have priority over questions on busy processors.
_NICENESS = 10
# Share of the budget for the search; the remainder is for encoding the result.
_WORK_PART = 0.8
_PAGE = resource.getpagesize()

_decoder = msgspec.msgpack.Decoder(ToReader)


@dataclass(kw_only=True)
class _Child:
    """A forked process at work on one question."""

    pid: int
    number: int
    pipe: int
    end_s: float
    parts: list[bytes] = field(default_factory=list)


class _Columns:
    """The columns of this process, and the APIs that read them."""

    def __init__(self, start: Start) -> None:
        install_aliases()
        log.configure(start.settings.log)
        self._url = start.url
        self._placement_settings = start.settings.placement
        self.settings = start.settings
        self.store: ReadingStore = open_follower(start.url, settings=start.settings.store)
        self.current = Current(self.store, clock=SystemClock())
        self._roost = (
            Roost(self.store, start.settings, current=self.current, database=start.url) if start.has_own_api else None
        )
        self.past_base = None if self._roost is None else PastBase(self.current)
        if self._roost is not None:
            self._roost.past_base = self.past_base
        self.apis = self._build_apis()
        gc.collect()
        gc.freeze()

    def _build_apis(self) -> dict[bool, Api]:
        settings = self._placement_settings
        allows = placement_policy(settings).allows
        placement = PlacementApplication(identify=_no_identity, allows=allows, options=options_of(settings))
        if self._roost is None:
            return {False: placement}
        serving = Serving(self.current, has_thread=False)
        wakeups, ends = Wakeups(settings.agents_max), Wakeups(ENDS_MAX, topic=ENDS)
        agents = AgentRegistry(serving, wakeups, ends=ends, clock=SystemClock())
        return {
            False: placement,
            True: OwnApplication(self._roost, agents=agents, identify=_no_identity, allows=allows),
        }

    def refresh(self) -> None:
        """Read the newest changes."""
        self.current.refresh()
        if self.past_base is not None:
            self.past_base.follow()

    def use_pause(self) -> None:
        """Do the work that can wait for a pause between questions."""
        self.refresh()
        if self.past_base is not None:
            self.past_base.advance()

    def use(self, settings: NewSettings) -> None:
        """Use new settings for further questions."""
        self.settings = settings.settings
        log.configure(self.settings.log)
        if self._roost is not None:
            self._roost.use(settings.settings)

    def leave_parent(self) -> None:
        """In a child, replace the database connection of the parent process."""
        self.store.fix(lambda: open_reader(self._url, settings=self.settings.store))


class Reader:
    """Answers questions from a socket until it closes.

    Args:
        channel: connection to the server.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._received = bytearray()
        self._children: dict[int, _Child] = {}  # by file descriptor of the pipe
        self._columns: _Columns | None = None

    def run(self) -> None:
        """Answer questions until the server closes the socket."""
        try:
            while self._poll(self._poll_timeout_s()):
                self._kill_overdue()
        finally:
            for child in list(self._children.values()):
                self._kill_child(child)

    def _poll_timeout_s(self) -> float:
        ends = [child.end_s - time.monotonic() for child in self._children.values()]
        return max(0.0, min([*ends, _IDLE_S]))

    def _poll(self, timeout_s: float) -> bool:
        """Wait for the next message or result; return whether the server is connected."""
        channel = self._channel.fileno()
        ready, _, _ = select.select([channel, *self._children], [], [], timeout_s)
        children = {ready_fd: self._children.get(ready_fd) for ready_fd in ready}
        if not ready and not self._children and self._columns is not None:
            with suppress(RoostError):  # The next question reports the error.
                self._columns.use_pause()
        for ready_fd in ready:
            if ready_fd == channel:
                data = self._channel.recv(_CHUNK)
                if not data:
                    return False
                self._received += data
                for message in self._messages():
                    self._dispatch(message)
                continue
            child = children[ready_fd]
            # A message may have ended this child, and another may have its file descriptor.
            if child is not None and self._children.get(ready_fd) is child:
                self._read_child(child)
        return True

    def _messages(self) -> Iterator[ToReader]:
        while len(self._received) >= FRAME_HEAD:
            size = int.from_bytes(self._received[:FRAME_HEAD], "big")
            if len(self._received) < FRAME_HEAD + size:
                return
            body = bytes(self._received[FRAME_HEAD : FRAME_HEAD + size])
            del self._received[: FRAME_HEAD + size]
            yield _decoder.decode(body)

    def _dispatch(self, message: ToReader) -> None:
        match message:
            case Start():
                try:
                    self._columns = _Columns(message)
                except RoostError as error:
                    self._send(Failure(number=0, problem=error_text(error)))
                    raise SystemExit(error.exit_code) from None
                self._send(Ready())
            case NewSettings():
                assert self._columns is not None, "settings come after the start"
                self._columns.use(message)
            case Cancel():
                for child in [each for each in self._children.values() if each.number == message.number]:
                    self._kill_child(child)
            case Ask():
                self._start_child(message)

    def _start_child(self, question: Ask) -> None:
        """Fork a child for a question, on the current columns."""
        assert self._columns is not None, "questions come after the start"
        try:
            self._columns.refresh()
            read_end, write_end = os.pipe()
            try:
                pid = os.fork()
            except OSError:
                os.close(read_end)
                os.close(write_end)
                raise
        except (RoostError, OSError) as error:
            self._send(Failure(number=question.number, problem=error_text(error)))
            return
        if pid == 0:
            _run_child(self._columns, question, write_end)
        os.close(write_end)
        end_s = time.monotonic() + question.budget_s + _GRACE_S
        self._children[read_end] = _Child(pid=pid, number=question.number, pipe=read_end, end_s=end_s)

    def _read_child(self, child: _Child) -> None:
        data = os.read(child.pipe, _CHUNK)
        if data:
            child.parts.append(data)
            return
        if child.parts:
            self._send_frame(b"".join(child.parts))
        else:
            self._send(Failure(number=child.number, problem="the process for the question died; the log has details"))
        self._kill_child(child)

    def _kill_overdue(self) -> None:
        now_s = time.monotonic()
        for child in [each for each in self._children.values() if each.end_s <= now_s]:
            self._send(Failure(number=child.number, problem="", is_over_budget=True))
            self._kill_child(child)

    def _kill_child(self, child: _Child) -> None:
        os.close(child.pipe)
        del self._children[child.pipe]
        os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)

    def _send(self, message: FromReader) -> None:
        self._send_frame(msgspec.msgpack.encode(message))

    def _send_frame(self, body: bytes) -> None:
        with suppress(OSError):  # The server is gone; the next poll notices.
            self._channel.sendall(len(body).to_bytes(FRAME_HEAD, "big"))
            self._channel.sendall(body)


def _no_identity(_headers: Mapping[str, str]) -> Identity | None:
    """Return no identity: the server has authenticated the request."""
    return None


def _run_child(columns: _Columns, question: Ask, pipe: int) -> None:
    """Answer one question in a forked child, then end the child."""
    status = 1
    try:
        memory_max = columns.settings.placement.question_memory_mib * 2**20
        _limit_resources(memory_max, seconds=question.budget_s)
        try:
            columns.leave_parent()
            message: FromReader = _answer(columns, question)
        except MemoryError:
            _lift_memory_limit()  # The objects of the question still fill the memory: the answer needs some, too.
            text = f"the question needs more than {memory_max >> 20:,} MiB (limit placement.question_memory_mib)"
            message = Failure(number=question.number, problem=text)
        except RoostError as error:
            message = Failure(number=question.number, problem=error_text(error))
        body = memoryview(msgspec.msgpack.encode(message))
        assert len(body) <= FRAME_MAX, "answers are limited"
        while body:
            body = body[os.write(pipe, body) :]
        status = 0
    except BaseException as error:  # noqa: BLE001  # the parent's stack must not run in the child
        log.fault(question.request_id, error)
    finally:
        os._exit(status)


def _limit_resources(memory: int, *, seconds: float) -> None:
    """Limit the additional memory, in bytes, and the processor time: the parent may die before it kills this child."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE + memory
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))
    end_s = math.ceil(seconds + _GRACE_S) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (end_s, end_s))


def _lift_memory_limit() -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _answer(columns: _Columns, question: Ask) -> Answer:
    api = columns.apis[question.is_own_api]
    request = Request(
        method=question.method,
        path=question.path,
        query_string=question.query_string,
        headers=question.headers,
        body=question.body,
        prefix=question.prefix,
        host_url=question.host_url,
        request_id=question.request_id,
        identity=Identity(**msgspec.structs.asdict(question.asker)),
    )
    response = _response(columns, api, request, budget_s=question.budget_s)
    return Answer(number=question.number, status=response.status, headers=dict(response.headers), body=response.body)


def _response(columns: _Columns, api: Api, request: Request, *, budget_s: float) -> Response:
    work = api.enter(request)
    if isinstance(work, Response):
        return work
    assert not isinstance(work, Batch), "batches write, and are not forwarded"
    over_budget = partial(OverBudget, "the work on this request", seconds=budget_s, limit="placement.question_budget_s")
    try:
        result = request.with_budget(_WORK_PART * budget_s, work, too_slow=over_budget)(columns.current)
        if isinstance(result, Plan | Act | Again):
            return api.fail(request, Unavailable("the reader process cannot answer requests that write"))
        return api.finish(request, result)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # every request gets a response
        return api.fail(request, error)


def main() -> None:
    """Answer questions on the socket whose file descriptor is the first argument."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # The server ends this process by closing the socket.
    os.nice(_NICENESS)
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        Reader(channel).run()


if __name__ == "__main__":
    main()
