"""The agent's client of its server over HTTP; requests are retried until the server answers."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from threading import Lock
from typing import TypeVar
from urllib.parse import quote

import msgspec

from roost.client.agent_token import RETRY_S as _TOKEN_RETRY_S
from roost.client.agent_token import WAIT_MAX_S as _TOKEN_WAIT_MAX_S
from roost.client.agent_token import AgentToken
from roost.client.outage_text import describe_outage
from roost.client.server_list import ServerList
from roost.client.wire import LOST, Wire, is_explained, problem_of
from roost.errors import AccessDenied, BadRequest, BadSettings, Conflict, NotFound, Unavailable
from roost.model.host import HostFacts
from roost.model.work.orders import (
    WAIT_MAX_S,
    Acknowledgement,
    OrderAnswer,
    Poll,
    PollAnswer,
    Registration,
    RegistrationAnswer,
)
from roost.model.work.standing import STANDINGS_MAX, Holders, Standing, Standings
from roost.observe import log

# First and longest pause before a retry, in seconds. Each retry doubles the pause, times a random 0.5 to 1.5.
_PAUSE_FIRST_S, _PAUSE_LAST_S = 0.5, 15.0
# Timeout of an answer in seconds, in addition to the wait of a poll.
_ANSWER_S = 30.0

# Statuses of refusals by the server; other errors come from a proxy, or are temporary.
_REFUSALS = frozenset({400, 401, 403, 404, 409, 413, 422})
_TERMINAL = frozenset({401, 403, 404})  # These end or restart an agent; a proxy may send them while the server is away.

Result = TypeVar("Result")
_decode_registration_answer = msgspec.json.Decoder(RegistrationAnswer).decode
_decode_poll_answer = msgspec.json.Decoder(PollAnswer).decode
_decode_standings = msgspec.json.Decoder(Standings).decode
_decode_acknowledgement = msgspec.json.Decoder(Acknowledgement).decode


class HttpServer:
    """The agent's client of Roost's own API: a ``roost.compute.agent.server_port.Server`` with persistent connections.

    Args:
        servers: URLs of the servers, without ``/v1``. A request that gets no answer goes to the next server.
        token: of the agent; None: no token. After the first registration, a refused token of a file is read
            again, and the request is retried with pauses of 300 s in total.
        draw: returns a random number, 0 <= number < 1.
        pause: waits the given seconds; returns false to stop the agent.

    Raises:
        BadSettings: a URL is invalid.
    """

    def __init__(
        self,
        servers: ServerList,
        *,
        token: AgentToken | str | None,
        draw: Callable[[], float],
        pause: Callable[[float], bool],
    ) -> None:
        self._servers, self._draw, self._pause = servers, draw, pause
        self._token = token if isinstance(token, AgentToken) else AgentToken(token)
        self._lock = Lock()
        self._idle = [self._wire(url) for url in servers.urls][:1]  # Each URL is checked.
        self._is_closed = False
        self._runs: dict[str, str] = {}  # registered run, by host
        self._failing_count = 0  # requests that are being retried

    def register(self, host: str, registration: Registration) -> RegistrationAnswer:
        """See ``Server``."""
        try:
            registered = self._request(
                "PUT", f"/v1/agents/{quote(host, safe='')}", registration, decode=_decode_registration_answer
            )
        except NotFound:
            raise BadSettings(self._servers.current, "it has no agents: it is not a Roost server") from None
        self._runs[host] = registration.run
        return registered

    def report(self, host: str, node: str, facts: HostFacts) -> None:
        """See ``Server``."""
        path = f"/v1/agents/{quote(host, safe='')}/nodes/{quote(node, safe='')}{self._run_query(host)}"
        self._request("PUT", path, facts, decode=_discard)

    def poll(self, poll: Poll) -> PollAnswer:
        """See ``Server``."""
        return self._request("POST", "/v1/orders/poll", poll, decode=_decode_poll_answer)

    def answer(self, order_id: int, answer: OrderAnswer) -> None:
        """See ``Server``."""
        try:
            acknowledgement = self._request(
                "POST", f"/v1/orders/{order_id}/answer", answer, decode=_decode_acknowledgement
            )
        except Conflict as error:
            raise BadSettings(self._servers.current, str(error)) from None
        if not acknowledgement.is_wanted:
            raise Conflict(f"the order {order_id} was withdrawn: undo its work")

    def deregister(self, host: str) -> None:
        """See ``Server``."""
        self._request("DELETE", f"/v1/agents/{quote(host, safe='')}{self._run_query(host)}", decode=_discard)

    def standings(self, host: str, uuids: Collection[str]) -> dict[str, Standing]:
        """Return the host and the state of each instance: deleted, busy, or neither. Omit unknown instances.

        Raises:
            AccessDenied, BadSettings, NotFound, BadRequest, Unavailable: as for ``Server``.
        """
        names, standings = sorted(uuids), dict[str, Standing]()
        path = f"/v1/agents/{quote(host, safe='')}/standings"
        for at in range(0, len(names), STANDINGS_MAX):
            holders = Holders(instances=tuple(names[at : at + STANDINGS_MAX]))
            standings |= self._request("POST", path, holders, decode=_decode_standings).instances
        return standings

    def close(self) -> None:
        """Close idle connections at once, and those in use after their answers."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for wire in idle:
            wire.close()

    def _run_query(self, host: str) -> str:
        """Return the query string with the registered run."""
        run = self._runs.get(host)
        return "" if run is None else f"?run={run}"

    def _request(
        self, method: str, path: str, body: msgspec.Struct | None = None, *, decode: Callable[[bytes], Result]
    ) -> Result:
        """Send a request until a server answers; return the decoded answer. Pause when all servers have failed.

        Raises:
            AccessDenied, BadSettings, NotFound, Conflict, BadRequest: the server refuses.
            Unavailable: ``pause`` stops the agent.
        """
        pause_s, failures, refused_s = _PAUSE_FIRST_S, 0, 0.0
        sent = None if body is None else msgspec.to_builtins(body)
        with self._log_outage() as note_failure:
            while True:
                url = self._servers.current
                try:
                    token = self._token.text
                    status, text = self._send(method, path, sent, url=url, token=token)
                    problem = problem_of(status, text)
                    if self._can_replace_token(status, text) and refused_s < _TOKEN_WAIT_MAX_S:
                        refused_s += self._replace_token(token, url, problem, is_first=not refused_s)
                        continue
                    if status < HTTPStatus.MULTIPLE_CHOICES or self._is_refusal(status, text):
                        self._check(url, status, problem)
                        return decode(text)
                except LOST as error:
                    problem = describe_outage(error, url)
                except msgspec.MsgspecError as error:
                    problem = f"its answer is malformed: {error}"
                note_failure(url, problem)
                self._servers.advance(url)
                failures += 1
                if failures % len(self._servers.urls):
                    continue
                if not self._pause(pause_s * (0.5 + self._draw())):
                    raise Unavailable(f"{url} did not answer: {problem}")
                pause_s = min(2 * pause_s, _PAUSE_LAST_S)

    @contextmanager
    def _log_outage(self) -> Iterator[Callable[[str, str], None]]:
        """Yield a function that records a failed try of a request; log the start and the end of an outage.

        An outage starts with the first failed request. It ends when all failed requests have answers, even refusals,
        of any server.
        """
        is_counted = False

        def note_failure(url: str, problem: str) -> None:
            nonlocal is_counted
            if is_counted:
                return
            is_counted = True
            with self._lock:
                self._failing_count += 1
                if self._failing_count == 1:
                    log.event("server_is_away", server=url, problem=problem)

        try:
            yield note_failure
        except Unavailable:
            is_counted = False  # The agent stops; the server is not back.
            raise
        finally:
            if is_counted:
                with self._lock:
                    self._failing_count -= 1
                    if not self._failing_count:
                        log.event("server_is_back", server=self._servers.current)

    def _is_refusal(self, status: int, text: bytes) -> bool:
        """Return whether the server itself refuses, rather than a proxy.

        After a registration, an unexplained 401, 403 or 404 counts as temporary.
        """
        return status in _REFUSALS and (status not in _TERMINAL or not self._runs or is_explained(text))

    def _can_replace_token(self, status: int, text: bytes) -> bool:
        """Return whether the server refuses a token, and its file may change."""
        is_refused = status == HTTPStatus.UNAUTHORIZED and is_explained(text)
        return is_refused and bool(self._runs) and self._token.can_change

    def _replace_token(self, token: str, url: str, problem: str, *, is_first: bool) -> float:
        """Read a refused token again, and pause if the file still has it; return the seconds of the pause.

        Raises:
            Unavailable: ``pause`` stops the agent.
        """
        if self._token.replace(token):
            return 0.0
        if is_first:
            log.event("credentials_refused", server=url, problem=problem, wait_s=_TOKEN_WAIT_MAX_S)
        if not self._pause(_TOKEN_RETRY_S):
            raise Unavailable(f"{url} refuses the token: {problem}")
        return _TOKEN_RETRY_S

    def _send(self, method: str, path: str, body: object, *, url: str, token: str) -> tuple[int, bytes]:
        """Send a request to a server; send it again if the server had closed the idle connection.

        Raises:
            LOST: no answer.
        """
        with self._borrow_wire(url, token) as wire:
            was_open = wire.is_open
            try:
                return wire.send(method, path, body, version=None)
            except LOST:
                if not was_open:
                    raise
            return wire.send(method, path, body, version=None)

    @contextmanager
    def _borrow_wire(self, url: str, token: str) -> Iterator[Wire]:
        with self._lock:
            others = [wire for wire in self._idle if (wire.url, wire.token) != (url, token)]
            self._idle = [wire for wire in self._idle if (wire.url, wire.token) == (url, token)]
            wire = self._idle.pop() if self._idle else None
        for other in others:
            other.close()
        wire = wire or self._wire(url)
        try:
            yield wire
        finally:
            with self._lock:
                is_open = not self._is_closed
                if is_open:
                    self._idle.append(wire)
            if not is_open:
                wire.close()

    def _wire(self, url: str) -> Wire:
        return Wire(url, headers=self._token.headers, timeout_s=WAIT_MAX_S + _ANSWER_S, setting=self._servers.setting)

    def _check(self, url: str, status: int, problem: str) -> None:
        match status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                raise AccessDenied(f"{url}: {problem}")
            case HTTPStatus.NOT_FOUND:
                raise NotFound("agent or order", problem, message=problem)
            case HTTPStatus.CONFLICT:
                raise Conflict(problem)
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise BadRequest(problem)


class InstanceLookup:
    """Looks up the standings of instances at the server of an agent.

    Args:
        server: the client.
        host: service of the agent.
    """

    def __init__(self, server: HttpServer, host: str) -> None:
        self._server, self._host = server, host

    def standings(self, uuids: Collection[str]) -> dict[str, Standing]:
        """See ``roost.compute.inventory.stale_allocations.Instances``."""
        return self._server.standings(self._host, uuids)


def _discard(_text: bytes) -> None:
    """Decode an answer without a body."""
