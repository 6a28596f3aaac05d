"""A request and an answer of the Placement API, whatever carries them."""

import math
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import parse_qsl

import msgspec

from roost.api.accept_header import acceptable_types
from roost.api.answer_options import DEFAULTS, Options
from roost.api.json_schema import Schema, decode
from roost.api.problems import Problem, VersionHeaders
from roost.api.versions import CACHE_HEADERS, OLDEST, Version
from roost.engine.columns.state import unbounded
from roost.errors import BadRequest
from roost.placement.current import Current
from roost.placement.deciding_thread import Task
from roost.placement.write_plan import Act, Again, Plan

JSON = "application/json"
# Some hundred microseconds' worth of what is shown.
_CHECK_INTERVAL = 64
# Names of hosts in a sentence.
_HOSTS_MAX = 5

# What answering takes: little; a search on the columns; a copy of them; the columns of the past.
Work = Literal["point", "search", "copy", "past"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class TooSlow(Exception):
    """A request takes longer than it may take here: it is to be answered elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who asks."""

    user_id: str
    project_id: str = ""
    roles: frozenset[str] = frozenset()
    is_system_scoped: bool = False
    hosts: frozenset[str] = frozenset()  # the only ones it may touch, in lower case; empty: it is bound to none

    def may_touch(self, host: str) -> bool:
        """Say whether it is not bound to other hosts."""
        return not self.hosts or host.lower() in self.hosts

    @property
    def bounds(self) -> str:
        """What it may touch, in words."""
        names, more = sorted(self.hosts)[:_HOSTS_MAX], len(self.hosts) - _HOSTS_MAX
        return f"host{'s' if len(self.hosts) > 1 else ''} {', '.join(names)}{f' and {more:,} more' * (more > 0)}"


Identify = Callable[[Mapping[str, str]], Identity | None]  # headers -> identity; None: not authenticated


@dataclass(slots=True, kw_only=True)
class Request:
    """What is asked. The way down fills in version, identity and parameters as it learns them."""

    method: str
    path: str  # below the mount prefix, decoded
    query_string: str = ""  # as it came, a character a byte
    headers: Mapping[str, str]  # names in lower case; of repeated ones the values joined by commas
    body: bytes = b""
    body_bytes: int = 0  # of the body that the server counts as under way
    is_body_read: bool = False
    is_write: bool = False  # whether its answer needs a commit, once that is known
    prefix: str = ""  # where the API is mounted: links and locations begin with it
    host_url: str = ""  # scheme and host as the client named them, for locations
    request_id: str = ""
    is_mounted: bool = True  # whether the path is below the mount prefix at all
    is_path_text: bool = True  # whether its bytes are of the encoding that paths of the API have
    route: str = ""  # the path with the names of its parameters, once it is known
    version: Version = OLDEST
    identity: Identity | None = None
    options: Options = DEFAULTS
    parameters: Mapping[str, str] = field(default_factory=dict)  # of the path
    is_abandoned: bool = False  # whether the client has left, or has its answer already
    work: Work = "point"
    is_at_once: bool = False  # whether the loop itself works on it
    until_s: float = math.inf  # end of the work on it, by ``time.perf_counter``
    too_slow: Exception = field(default_factory=TooSlow)  # raised when work goes on beyond that
    _decoded: Any = None

    def supports(self, version: Version) -> bool:
        """Say whether the asked version has what came with another."""
        return self.version >= version

    def json(self, schema: Schema) -> Any:
        """Return the body, held against a schema; read once, however often a plan is made.

        Raises:
            BadRequest: it is no JSON, or not what the schema asks.
        """
        if self._decoded is None:
            self._decoded = decode(self.body, schema)
        return self._decoded

    def check_active(self) -> None:
        """End the work if its client has left, or its budget is used up; cheap enough to be called often.

        Raises:
            Problem: 503, the client has left.
            Exception: ``too_slow``.
        """
        if self.is_abandoned:
            raise Problem(503, "the client has left, or was answered already")
        if time.perf_counter() > self.until_s:
            raise self.too_slow

    def with_budget(self, budget_s: float, task: Task[Answer], *, too_slow: Exception | None = None) -> Task[Answer]:
        """Return a task that may work for so long.

        Args:
            budget_s: seconds from the moment at which the task is begun.
            too_slow: what is raised after that; None: ``TooSlow``.
        """

        def run(current: Current) -> "Answer | Plan[Answer] | Act[Answer] | Again":
            self.until_s, self.too_slow = time.perf_counter() + budget_s, too_slow or TooSlow()
            state = current.state
            state.check = self.check_active
            try:
                return task(current)
            finally:
                state.check = unbounded
                self.until_s = math.inf

        return run

    def while_active(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield what there may be much of, and check now and then; see ``check_wanted``."""
        for at, item in enumerate(items):
            if at % _CHECK_INTERVAL == 0:
                self.check_active()
            yield item

    def pairs(self) -> list[tuple[str, str]]:
        """Return the query string as names and values, in order, decoded.

        Raises:
            BadRequest: it is no UTF-8.
        """
        # Until its parts are told apart, every character stands for a byte.
        found = parse_qsl(self.query_string.replace(";", "&"), keep_blank_values=True, encoding="latin-1")
        try:
            return [(_decode_text(name), _decode_text(value)) for name, value in found]
        except UnicodeDecodeError as error:
            raise BadRequest(f"Invalid query string parameters: {error}") from None

    def query(self, schema: Schema) -> dict[str, str]:
        """Return the last value of each name of the query string, held against a schema.

        Raises:
            BadRequest: a name is unknown, or a value not what the schema asks.
        """
        values = dict(self.pairs())
        problem = schema.query_problem(values)
        if problem is not None:
            raise BadRequest(f"Invalid query string parameters: {problem}")
        return values

    def values(self, name: str) -> list[str]:
        """Return all values of one name of the query string, in order."""
        return [value for each, value in self.pairs() if each == name]

    def url(self, path: str) -> str:
        """Return the path of a link, below where the API is mounted."""
        return self.prefix + path

    def location(self, path: str) -> dict[str, str]:
        """Return the header that says where something new is."""
        return {"location": self.host_url + self.prefix + path}


class Stream(Protocol):
    """The body of an answer that comes in parts, over a long time."""

    def open(self) -> None:
        """Begin, before anything is answered; may raise in place of that."""

    def close(self) -> None:
        """End, whatever happened."""

    async def run(self, receive: Receive, send: Send, *, abort: Callable[[], None]) -> None:
        """Send the body, after the head; ``abort`` ends the connection in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None  # in place of the body


Handler = Callable[[Request, Current], Response | Plan[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A request whose head was accepted: what its body may have, and what to do once it is there."""

    enter: Callable[[], Response | Task[Response]]  # answers what needs no columns, or returns what to ask of them
    body_max_bytes: int | None = None  # None: as many as the settings allow


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
    """Return an answer, as JSON if there is a value, with the headers that caches want.

    Args:
        changed_s: when the newest of what is shown changed, in seconds since the epoch; None: no such headers.
        headers: more of them.
    """
    found: dict[str, str] = dict(headers or {})
    body = b""
    if value is not None:
        body = value if isinstance(value, bytes) else msgspec.json.encode(value)
        found["content-type"] = JSON
    if changed_s is not None and request.supports(CACHE_HEADERS):
        found["last-modified"] = formatdate(changed_s, usegmt=True)
        found["cache-control"] = "no-cache"
    return Response(status=status, body=body, headers=found)


def require_json(request: Request) -> None:
    """Refuse a body that is not declared to be JSON.

    Raises:
        Problem: 415.
    """
    header = request.headers.get("content-type") or "None"
    declared = header.partition(";")[0]
    if declared != JSON:
        raise Problem(
            415,
            f"The media type {declared} is not supported, use application/json",
            before=f"The request media type {header} is not supported by this server.\n",
        )


def require_reader(request: Request) -> None:
    """Refuse to answer a client that does not read JSON.

    Raises:
        Problem: 406.
    """
    accept = request.headers.get("accept")
    if accept and not acceptable_types(accept, [JSON]):
        raise not_acceptable(request, "Only application/json is provided")


def not_acceptable(
    request: Request, text: str, *, more: Mapping[str, str] | None = None, version_headers: VersionHeaders = "all"
) -> Problem:
    """Return the problem of what a client does not take: a media type, or any version there is."""
    accept = request.headers.get("accept")
    wanted = JSON if accept in {None, "", "*/*"} else accept
    before = f"The resource could not be generated that was acceptable to your browser\n(content of type {wanted}. "
    return Problem(406, text, before=before, more=more, version_headers=version_headers)


def new_request_id() -> str:
    """Return what names a request in logs and answers."""
    bits = random.getrandbits(128)  # it is to be told from others, not hard to guess
    text = f"{bits:032x}"
    return f"req-{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[bits & 3]}{text[17:20]}-{text[20:]}"
