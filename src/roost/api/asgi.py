"""An API as an ASGI application: limits, timeouts, threads, metrics and logs."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Protocol
from urllib.parse import unquote_to_bytes

from roost.api.access.allowed_hosts import AllowedHosts
from roost.api.access.cors import Cors
from roost.api.access.session_cookie import open_session
from roost.api.body_limits import BodyReader
from roost.api.fast_reads import FastReads
from roost.api.http import Admission, Batch, Identity, Receive, Request, Response, Send, TooSlow, new_request_id
from roost.api.log_outcome import log_outcome
from roost.api.loop_outcome import AsgiOutcome, Mailbox
from roost.api.outages import Outages
from roost.api.problems import Problem, busy
from roost.api.request_trace import TaskTimer, time_reader, trace_request
from roost.api.slow_lists import SlowLists
from roost.api.transfer.compression import add_vary, compress
from roost.api.transfer.entity_tags import revalidate
from roost.errors import OverBudget, Unavailable
from roost.model.settings.placement_settings import Placement as Settings
from roost.model.work.work_rows import ChangeRow
from roost.observe import log, metrics
from roost.observe.traces import current_tracer
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving, call_listener
from roost.placement.job import Task
from roost.placement.write_plan import Act, Again, Plan

Scope = MutableMapping[str, Any]
# Extension of a scope with two functions: "abort" closes the connection at once, and "narrow" shrinks its buffers.
ABORT = "roost.abort"
# Extension of a scope: a coroutine function that sends a response, given its status, its headers with the length of the
# body, and its body.
RESPOND = "roost.respond"


# Seconds that the serving thread, which holds the newest columns, spends on a search before the reader takes over.
_SEARCH_S = 0.01
# Maximum number of providers of a fleet whose columns the serving thread copies.
_SMALL_MAX = 200


class Api(Protocol):
    """An API without the HTTP around it."""

    path_encoding: ClassVar[str]  # encoding of percent-encoded bytes in a path
    route_prefix: ClassVar[str]  # prefix of its routes in metrics, wherever it is mounted

    def is_open(self, request: Request) -> bool:
        """Return whether a request needs no authentication."""

    def admit(self, request: Request) -> Response | Admission:
        """Check identity, path and policy before the body is read; return an error or the next step."""

    def enter(self, request: Request) -> Response | Task[Response] | Batch:
        """Admit a request with its body, and return its answer or its work."""

    def refuse(self, request: Request, response: Response) -> Response:
        """Complete the response to an unknown client."""

    def finish(self, request: Request, response: Response) -> Response:
        """Add the headers of every response."""

    def fail(self, request: Request, error: Exception) -> Response:
        """Return an error as a response in a format that the client accepts."""


class Authenticate(Protocol):
    """Asynchronous authentication."""

    async def __call__(self, request: Request, /) -> Identity | Response:
        """Return the identity of the client, or the response that refuses it."""


class Reader(Protocol):
    """The reader process, for the requests of one API."""

    @property
    def is_ready(self) -> bool:
        """Whether the process answers at once, because it has loaded the columns."""

    def prepare(self) -> None:
        """Start the process in the background."""

    async def forward(self, request: Request) -> Response:
        """Return the response to an authenticated request."""


ChangeListener = Callable[[Sequence[ChangeRow]], None]


class AsgiApplication:
    """An API as an ASGI application.

    Args:
        application: the API.
        serving: the thread that runs its tasks.
        settings: limits, and the mount prefix.
        authenticate: asynchronous authentication; None: the application identifies clients itself.
        bodies, outages: shared by all applications of the process; None: new ones for this application.
        on_change: called on the loop with the records of each durable change; its errors are only logged.
        reader: the reader process, for long reads; None: the serving thread answers everything.
        saves_traffic: whether to compress long bodies, and to omit bodies that a client has already.
        has_sessions: whether to accept browser sessions in place of tokens.
    """

    def __init__(
        self,
        application: Api,
        serving: Serving,
        *,
        settings: Settings | None = None,
        authenticate: Authenticate | None = None,
        bodies: BodyReader | None = None,
        outages: Outages | None = None,
        reader: Reader | None = None,
        on_change: ChangeListener | None = None,
        saves_traffic: bool = False,
        has_sessions: bool = False,
    ) -> None:
        self._application = application
        self._serving = serving
        self._settings = settings or Settings()
        self._bodies = bodies or BodyReader(self._settings)
        self._outages = outages or Outages()
        self._authenticate = authenticate
        self._reader = reader
        self._on_change = on_change
        self._saves_traffic, self._has_sessions = saves_traffic, has_sessions
        self._cors = Cors.from_settings(self._settings)
        self._hosts = AllowedHosts.from_settings(self._settings)
        self._mailbox: Mailbox | None = None
        self._fast_reads, self._slow_lists = FastReads(), SlowLists()
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http", scope["type"]
        start_s = time.perf_counter()
        request = self._parse_request(scope)
        self._in_flight += 1
        try:
            if self._hosts is not None:
                self._hosts.check(request)
            response = self._preflight(request) or await self._answer(request, receive)
            if response.stream is not None:
                more = await response.stream.open()
                response = replace(response, headers={**response.headers, **more})
            if self._saves_traffic:
                response = await compress(request, await revalidate(request, response))
        except Exception as error:  # noqa: BLE001  # every request gets an answer
            self._outages.record_failure(request, error)
            response = self._application.fail(request, error)
        finally:
            self._bodies.release(request)
            self._in_flight -= 1
        headers = [
            (name.encode("latin-1"), _header_bytes(value)) for name, value in self._headers(request, response).items()
        ]
        start = {"type": "http.response.start", "status": response.status, "headers": headers}
        if response.stream is not None:
            self._observe(request, response, start_s)
            try:
                await send(start)
                connection = scope["extensions"][ABORT]
                connection["narrow"]()
                await response.stream.run(receive, send, abort=connection["abort"])
            except Exception as error:
                log.fault(request.request_id, error)
                raise  # The server closes the connection, so that the client does not wait for the rest.
            finally:
                response.stream.close()
            return
        respond = scope.get("extensions", {}).get(RESPOND)
        if respond is None:
            await send(start)
            await send({"type": "http.response.body", "body": response.body})
        else:
            await respond(status=response.status, headers=headers, body=response.body)
        self._observe(request, response, start_s)

    def _preflight(self, request: Request) -> Response | None:
        return None if self._cors is None else self._cors.preflight(request)

    def _headers(self, request: Request, response: Response) -> Mapping[str, str]:
        headers = dict(response.headers)
        if "expect" in request.headers and not request.is_body_read:
            # The client may still send the body or omit it, so a next request on this connection would be ambiguous.
            headers["connection"] = "close"
        if self._cors is not None:
            headers |= self._cors.headers(request.headers.get("origin"))
        if self._saves_traffic and response.stream is None:
            add_vary(headers)
        return headers

    def _observe(self, request: Request, response: Response, start_s: float) -> None:
        elapsed_s = time.perf_counter() - start_s
        route = self._application.route_prefix + request.route if request.route else ""
        metrics.count_response(route, request.method, response.status, elapsed_s=elapsed_s)
        tracer = current_tracer()
        if tracer is not None:
            trace_request(tracer, request, response, route=route, start_s=start_s)
        self._note_outcome(request, response)
        if self._settings.log_requests:
            identity = request.identity
            log.request(
                request_id=request.request_id,
                method=request.method,
                path=request.prefix + request.path,
                status=response.status,
                elapsed_s=elapsed_s,
                user=None if identity is None else identity.user_id,
                project=None if identity is None else identity.project_id,
                version=str(request.version),
                size=len(response.body),
            )

    def _note_outcome(self, request: Request, response: Response) -> None:
        log_outcome(request, response)
        if self._on_change is not None and request.trail and response.status < 400:
            call_listener("on_change", partial(self._on_change, request.trail))

    async def _answer(self, request: Request, receive: Receive) -> Response:
        if self._in_flight > self._settings.requests_max:
            raise busy(f"{self._settings.requests_max:,} requests are in progress", "requests_max")
        if not request.is_mounted:
            raise Problem(404)
        if not request.is_path_text:
            raise Problem(400, "The path is not UTF-8.")
        # Authenticate by the head alone: the body of an unknown client is not read.
        is_open = self._application.is_open(request)
        if self._has_sessions:
            open_session(request, now_s=time.time(), is_open=is_open)
        if self._authenticate is not None and not is_open:
            identity = await self._authenticate(request)
            if isinstance(identity, Response):
                return self._application.refuse(request, identity)
            request.identity = identity
        admitted = self._application.admit(request)
        if isinstance(admitted, Response):
            return admitted
        await self._bodies.read(request, receive, route_max=admitted.body_max_bytes)
        entered = admitted.enter()
        if isinstance(entered, Response):
            return entered
        loop = asyncio.get_running_loop()
        if self._mailbox is None or self._mailbox.loop is not loop:
            self._mailbox = Mailbox(loop)
        if isinstance(entered, Batch):
            return self._application.finish(request, await self._answer_batch(request, entered, receive))
        if request.method == "GET":
            entered = self._fast_reads.measure(request, entered)
            at_once = self._fast_reads.answer_at_once(request, entered, self._serving)
            if at_once is not None:
                return self._application.finish(request, at_once)
        return await self._answer_task(request, entered, receive)

    async def _answer_task(self, request: Request, task: Task[Response], receive: Receive) -> Response:
        """Answer in the serving thread, or in the reader process if the work is long."""
        reader = self._reader
        if request.work == "scan" and reader is None:
            raise Unavailable("this request needs a reader process: a stored database and placement.has_reader")
        if request.work == "list":
            is_slow, task = self._slow_lists.is_slow(request), self._slow_lists.measure(request, task)
            if is_slow and reader is not None:
                if reader.is_ready:
                    return await self._answer_in_reader(request, receive)
                reader.prepare()
        if reader is None or request.work == "point" or (request.work == "list" and not reader.is_ready):
            bounded = self._limit_work(request, task)
            return self._application.finish(request, await self._answer_in_thread(request, bounded, receive))
        if request.work not in {"past", "scan"}:
            try:
                attempt = try_in_thread(request, task)
                return self._application.finish(request, await self._answer_in_thread(request, attempt, receive))
            except TooSlow:
                pass
        return await self._answer_in_reader(request, receive)

    def _limit_work(self, request: Request, task: Task[Response]) -> Task[Response]:
        """Return a task with the budget of requests that only the serving thread can answer."""
        budget_s = self._settings.question_budget_s
        slow = partial(OverBudget, "the work on this request", seconds=budget_s, limit="placement.question_budget_s")
        return request.with_budget(budget_s, task, too_slow=slow)

    async def _answer_batch(self, request: Request, batch: Batch, receive: Receive) -> Response:
        """Answer the requests of a batch in the serving thread, which takes them together."""
        assert self._mailbox is not None, "the caller makes the mailbox"
        outcomes = [AsgiOutcome(self._mailbox.loop, self._mailbox) for _ in batch.parts]
        tasks = [
            (self._outages.track(part, self._limit_work(part, entered)), outcome)
            for (part, entered), outcome in zip(batch.parts, outcomes, strict=True)
            if not isinstance(entered, Response)
        ]
        try:
            self._serving.submit_all(tasks)
        except Unavailable as error:
            for _, outcome in tasks:
                outcome.expire(error)

        def give_up(problem: Problem) -> None:
            for (part, _), outcome in zip(batch.parts, outcomes, strict=True):
                part.is_abandoned = True
                outcome.expire(problem)

        responses = []
        with self._limit_time(request, receive, give_up):
            for (part, entered), outcome in zip(batch.parts, outcomes, strict=True):
                response = entered if isinstance(entered, Response) else await self._answer_part(part, outcome)
                self._note_outcome(part, response)
                responses.append(response)
        return batch.join(responses)

    async def _answer_part(self, part: Request, outcome: AsgiOutcome) -> Response:
        """Return the response to a request of a batch; its error is a response, too."""
        try:
            response = await outcome.wait()
        except Exception as error:  # noqa: BLE001  # every request gets an answer
            self._outages.record_failure(part, error)
            return self._application.fail(part, error)
        self._outages.record_success(part)
        return response

    async def _answer_in_thread(self, request: Request, task: Task[Response], receive: Receive) -> Response:
        """Answer in the serving thread."""
        assert self._mailbox is not None, "the caller makes the mailbox"
        outcome = AsgiOutcome(self._mailbox.loop, self._mailbox)
        timer = None if current_tracer() is None else TaskTimer(request)
        task = self._outages.track(request, task)
        self._serving.submit(task if timer is None else timer.measure(task), outcome)
        try:
            with self._limit_time(request, receive, outcome.expire):
                response = await outcome.wait()
        finally:
            if timer is not None:
                timer.end()
        self._outages.record_success(request)
        return response

    async def _answer_in_reader(self, request: Request, receive: Receive) -> Response:
        """Answer in the reader process."""
        assert self._reader is not None, "the caller checks for a reader"
        answer = asyncio.ensure_future(self._reader.forward(request))
        problems: list[Problem] = []

        def end(problem: Problem) -> None:
            problems.append(problem)
            answer.cancel()

        with time_reader(request), self._limit_time(request, receive, end):
            try:
                return await answer
            except asyncio.CancelledError:
                if problems:
                    raise problems[0] from None
                answer.cancel()
                raise

    @contextmanager
    def _limit_time(self, request: Request, receive: Receive, end: Callable[[Problem], None]) -> Iterator[None]:
        """Abandon a request when it takes too long, or its client disconnects."""
        loop = asyncio.get_running_loop()
        timeout_s = self._settings.request_timeout_s

        def give_up(problem: Problem) -> None:
            request.is_abandoned = True
            end(problem)

        def end_late() -> None:
            give_up(busy(f"the answer took longer than {timeout_s:g} s", "request_timeout_s"))

        timer = loop.call_later(timeout_s, end_late)
        watcher = None
        if request.method == "GET" or request.work != "point":
            watcher = loop.create_task(
                _watch_disconnect(receive, lambda: give_up(Problem(503, "the client disconnected")))
            )
        try:
            yield
        finally:
            timer.cancel()
            if watcher is not None:
                watcher.cancel()

    def _parse_request(self, scope: Scope) -> Request:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]},{text}" if key in headers else text
        raw, is_path_text = unquote_to_bytes(scope["raw_path"]), True
        try:
            path = raw.decode(self._application.path_encoding)
        except UnicodeDecodeError:
            path, is_path_text = raw.decode("latin-1"), False
        prefix = self._settings.prefix
        is_mounted = not prefix or path == prefix or path.startswith(f"{prefix}/")
        return Request(
            method=scope["method"],
            path=path[len(prefix) :] if is_mounted else path,
            query_string=scope["query_string"].decode("latin-1"),
            headers=headers,
            prefix=prefix,
            is_mounted=is_mounted,
            is_path_text=is_path_text,
            host_url=f"{scope['scheme']}://{headers.get('host', '')}",
            request_id=new_request_id(),
            client=(scope.get("client") or ("",))[0],
        )


def try_in_thread(request: Request, task: Task[Response]) -> Task[Response]:
    """Return a read with the limits of the serving thread; beyond them, the reader process answers.

    Raises:
        TooSlow: in the task, beyond a limit.
    """
    return request.with_budget(_SEARCH_S, _require_small_fleet(task) if request.work == "copy" else task)


def _require_small_fleet(task: Task[Response]) -> Task[Response]:
    """Return a task that raises ``TooSlow`` on a large fleet, whose columns take long to copy."""

    def run(current: Current) -> "Response | Plan[Response] | Act[Response] | Again":
        if len(current.state.providers) > _SMALL_MAX:
            raise TooSlow
        return task(current)

    return run


async def _watch_disconnect(receive: Receive, act: Callable[[], None]) -> None:
    """Call a function when a client disconnects after its request was read."""
    if (await receive())["type"] == "http.disconnect":
        act()


def _header_bytes(value: str) -> bytes:
    # Text of a client in a header must not begin another header.
    return value.replace("\r", " ").replace("\n", " ").encode("latin-1", "replace")
