"""Requests and responses, independent of their transport."""

import math
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import parse_qsl

import msgspec

from roost.api.accept_header import acceptable_types
from roost.api.answer_options import DEFAULTS, Options
from roost.api.changes.change_note import ChangeNote
from roost.api.changes.change_row import Author, sign_act, sign_plan
from roost.api.json_schema import Schema, decode
from roost.api.problems import Problem, VersionHeaders
from roost.engine.columns.state import allow_any_work
from roost.errors import BadRequest
from roost.model.fleet import Departure
from roost.model.placement.microversions import CACHE_HEADERS, OLDEST, Version
from roost.model.work.work_rows import ChangeRow
from roost.observe.traces import Part
from roost.placement.current import Current
from roost.placement.job import Task
from roost.placement.write_plan import Act, Again, Plan

JSON = "application/json"
# Items between two checks: some hundred microseconds of work.
_CHECK_INTERVAL = 64
# Maximum number of host names in a message.
_HOSTS_MAX = 5

# The work for an answer: a few reads, a list of many rows, a search of the columns, a copy of the columns, a rebuild of
# past columns, or a scan of everything.
Work = Literal["point", "list", "search", "copy", "past", "scan"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class TooSlow(Exception):
    """A request exceeds its budget here; another thread or process must answer it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """An authenticated client."""

    user_id: str
    project_id: str = ""
    roles: frozenset[str] = frozenset()
    is_system_scoped: bool = False
    hosts: frozenset[str] = frozenset()  # the only hosts that the client may touch, in lower case; empty: no limit

    def may_touch(self, host: str) -> bool:
        """Return whether the token allows acts on a host."""
        return not self.hosts or host.lower() in self.hosts

    @property
    def bounds(self) -> str:
        """The hosts of the token, as text for messages."""
        names, more = sorted(self.hosts)[:_HOSTS_MAX], len(self.hosts) - _HOSTS_MAX
        return f"host{'s' if len(self.hosts) > 1 else ''} {', '.join(names)}{f' and {more:,} more' * (more > 0)}"


Identify = Callable[[Mapping[str, str]], Identity | None]  # headers -> identity; None: not authenticated


@dataclass(slots=True, kw_only=True)
class Request:
    """A request; version, identity and parameters are set while it is admitted."""

    method: str
    path: str  # below the mount prefix, decoded
    query_string: str = ""  # raw, one character per byte
    headers: Mapping[str, str]  # names in lower case; values of repeated headers are joined by commas
    body: bytes = b""
    body_bytes: int = 0  # bytes that the server counts as in flight
    is_body_read: bool = False
    is_write: bool = False  # whether its task needs a commit; set when the task has run
    prefix: str = ""  # mount prefix of the API, the start of links and locations
    host_url: str = ""  # scheme and host from the request, for locations
    request_id: str = ""
    is_mounted: bool = True  # whether the path is below the mount prefix
    is_path_text: bool = True  # whether the path decodes in the encoding of the API
    route: str = ""  # the path with the names of its parameters, once found
    version: Version = OLDEST
    identity: Identity | None = None
    options: Options = DEFAULTS
    parameters: Mapping[str, str] = field(default_factory=dict)  # of the path
    change: ChangeNote | None = None  # the change that it makes, once its route is found; None: it changes nothing
    trail: tuple[ChangeRow, ...] = ()  # the records of the change, once it is planned
    problem: str = ""  # the error of its response
    client: str = ""  # address of the client; empty: unknown
    session_end_s: int | None = None  # end of the browser session that has its token, since the epoch; None: no session
    is_abandoned: bool = False  # whether the client disconnected, or has its answer already
    work: Work = "point"
    is_at_once: bool = False  # whether the loop itself answers it
    budget_s: float = math.inf  # seconds of work
    until_s: float = math.inf  # end of its budget, by ``time.perf_counter``
    too_slow: Callable[[], Exception] = TooSlow  # makes the error that is raised after that time
    parts: tuple[Part, ...] = ()  # parts of its time, for its trace
    _decoded: Any = None

    def supports(self, version: Version) -> bool:
        """Return whether the requested version includes the features of another one."""
        return self.version >= version

    def json(self, schema: Schema) -> Any:
        """Return the body, validated by a schema; it is decoded only once, even if the task runs again.

        Raises:
            BadRequest: the body is not JSON, or does not match the schema.
        """
        if self._decoded is None:
            self._decoded = decode(self.body, schema)
        return self._decoded

    def sign(
        self, result: "Answer | Plan[Answer] | Act[Answer] | Again", current: Current
    ) -> "Answer | Plan[Answer] | Act[Answer] | Again":
        """Return a plan or an act with the records of the client's change; other results stay."""
        self.trail = ()  # The task may run again, and then change nothing.
        identity, note = self.identity, self.change
        if identity is None or note is None or not isinstance(result, Plan | Act):
            return result
        author = Author(
            user_id=identity.user_id,
            project_id=identity.project_id,
            roles=identity.roles,
            request_id=self.request_id,
        )
        if isinstance(result, Plan):
            signed = sign_plan(result, note, author, current=current)
            self.trail = signed.trail
            return signed
        act = sign_act(result, note, author, current=current)
        self.trail = act.deed.trail if isinstance(act.deed, Departure) else ()
        return act

    def note(self, kind: str = "", *objects: str, **details: str) -> None:
        """Describe the change that the request makes; see ``ChangeNote.set``."""
        if self.change is not None:
            self.change.set(kind, *objects, **details)

    def note_object(self, name: str, details: Mapping[str, str]) -> None:
        """Describe the change of one object; see ``ChangeNote.set_object``."""
        if self.change is not None:
            self.change.set_object(name, details)

    def check_active(self) -> None:
        """Stop the work if the client disconnected or the budget is used up; cheap enough for frequent calls.

        Raises:
            Problem: 503, the client disconnected.
            Exception: of ``too_slow``.
        """
        if self.is_abandoned:
            raise Problem(503, "the client disconnected, or has its response already")
        if time.perf_counter() > self.until_s:
            raise self.too_slow()

    def with_budget(
        self, budget_s: float, task: Task[Answer], *, too_slow: Callable[[], Exception] = TooSlow
    ) -> Task[Answer]:
        """Return a task with a time budget.

        Args:
            budget_s: seconds from the start of the task.
            too_slow: makes the error after that time.
        """

        def run(current: Current) -> "Answer | Plan[Answer] | Act[Answer] | Again":
            self.until_s, self.too_slow = time.perf_counter() + budget_s, too_slow
            self.budget_s = budget_s
            state = current.state
            state.check = self.check_active
            try:
                return task(current)
            finally:
                state.check = allow_any_work
                self.until_s = math.inf

        return run

    def budget_use(self) -> float:
        """Return the used share of the time budget; 0 without one, or if another thread or process answers later."""
        if self.until_s == math.inf or self.too_slow is TooSlow:
            return 0.0
        return 1.0 - (self.until_s - time.perf_counter()) / self.budget_s

    def while_active(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, with regular calls of ``check_active``."""
        for at, item in enumerate(items):
            if at % _CHECK_INTERVAL == 0:
                self.check_active()
            yield item

    def pairs(self) -> list[tuple[str, str]]:
        """Return the names and values of the query string, decoded and in order.

        Raises:
            BadRequest: the query string is not UTF-8.
        """
        # Split first, with one character per byte, and decode the parts afterwards.
        pairs = parse_qsl(self.query_string.replace(";", "&"), keep_blank_values=True, encoding="latin-1")
        try:
            return [(_decode_text(name), _decode_text(value)) for name, value in pairs]
        except UnicodeDecodeError as error:
            raise BadRequest(f"Invalid query string parameters: {error}") from None

    def query(self, schema: Schema) -> dict[str, str]:
        """Return the last value of each name in the query string, validated by a schema.

        Raises:
            BadRequest: a name is unknown, or a value invalid.
        """
        values = dict(self.pairs())
        problem = schema.query_problem(values)
        if problem is not None:
            raise BadRequest(f"Invalid query string parameters: {problem}")
        return values

    def values(self, name: str) -> list[str]:
        """Return all values of a name in the query string, in order."""
        return [value for each, value in self.pairs() if each == name]

    def url(self, path: str) -> str:
        """Return a path with the mount prefix, for a link."""
        return self.prefix + path

    def location(self, path: str) -> dict[str, str]:
        """Return the header with the location of a new resource."""
        return {"location": self.host_url + self.prefix + path}


class Stream(Protocol):
    """The body of a long response, sent in parts."""

    async def open(self) -> Mapping[str, str]:
        """Begin, before the head is sent, and return further headers; an error here becomes the response."""

    def close(self) -> None:
        """End; called after ``open`` in every case."""

    async def run(self, receive: Receive, send: Send, *, abort: Callable[[], None]) -> None:
        """Send the body after the head; ``abort`` closes the connection at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None  # in place of the body


Handler = Callable[[Request, Current], Response | Plan[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Requests that arrived together: each is answered as if alone, and their writes share commits."""

    parts: Sequence[tuple[Request, Response | Task[Response]]]
    join: Callable[[Sequence[Response]], Response]  # returns the response to all, from those in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A request with an accepted head: the limit of its body, and the next step."""

    enter: Callable[[], Response | Task[Response] | Batch]  # returns the response, or the work on the columns
    body_max_bytes: int | None = None  # None: the limit of the settings


def _decode_text(raw: str) -> str:
    return raw if raw.isascii() else raw.encode("latin-1").decode()


def make_response(
    request: Request,
    value: object = None,
    *,
    status: int = 200,
    changed_s: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a response, with a JSON body if there is a value, and with cache headers.

    Args:
        changed_s: newest change of the content, in seconds since the epoch; None: no cache headers.
        headers: further headers.
    """
    all_headers: dict[str, str] = dict(headers or {})
    body = b""
    if value is not None:
        body = value if isinstance(value, bytes) else msgspec.json.encode(value)
        all_headers["content-type"] = JSON
    if changed_s is not None and request.supports(CACHE_HEADERS):
        all_headers["last-modified"] = formatdate(changed_s, usegmt=True)
        all_headers["cache-control"] = "no-cache"
    return Response(status=status, body=body, headers=all_headers)


def require_json(request: Request) -> None:
    """Refuse a body that is not declared as JSON.

    Raises:
        Problem: 415.
    """
    header = request.headers.get("content-type") or "None"
    declared = header.partition(";")[0]
    if declared != JSON:
        raise Problem(
            415,
            f"The media type {declared} is not supported, use application/json",
            preamble=f"The request media type {header} is not supported by this server.\n",
        )


def require_reader(request: Request) -> None:
    """Refuse a client that does not accept JSON.

    Raises:
        Problem: 406.
    """
    accept = request.headers.get("accept")
    if accept and not acceptable_types(accept, [JSON]):
        raise not_acceptable(request, "Only application/json is provided")


def not_acceptable(
    request: Request, text: str, *, more: Mapping[str, str] | None = None, version_headers: VersionHeaders = "all"
) -> Problem:
    """Return the 406 error for an unacceptable media type or version."""
    accept = request.headers.get("accept")
    media_types = JSON if accept in {None, "", "*/*"} else accept
    preamble = (
        f"The resource could not be generated that was acceptable to your browser\n(content of type {media_types}. "
    )
    return Problem(406, text, preamble=preamble, more=more, version_headers=version_headers)


def new_request_id() -> str:
    """Return an id for a request, for logs and responses."""
    bits = random.getrandbits(128)  # unique, not unpredictable
    text = f"{bits:032x}"
    return f"req-{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[bits & 3]}{text[17:20]}-{text[20:]}"
