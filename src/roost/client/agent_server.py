"""The server as an agent asks it over HTTP, patiently: what is not answered is asked again until it is."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from threading import Lock
from typing import TypeVar
from urllib.parse import quote

import msgspec

from roost.client.wire import LOST, Wire, is_explained, problem_of
from roost.errors import BadRequest, BadSettings, Conflict, NotFound, Unavailable
from roost.model.host import HostFacts
from roost.model.work.orders import WAIT_MAX_S, Kept, OrderAnswer, Poll, Polled, Registered, Registration
from roost.model.work.standing import ASKED_MAX, Holders, Standing, Standings
from roost.observe import log

SETTING = "agent.server"
# Before each further try, the one twice as long as that before it, and each shorter or longer by half of it at most.
_PAUSE_FIRST_S, _PAUSE_LAST_S = 0.5, 15.0
# What an answer takes at most, beside the time for which a poll may wait.
_ANSWER_S = 30.0

# What a server says of a question; whatever else is not of 200 to 299 is said by what stands before it, or may pass.
_REFUSALS = frozenset({400, 401, 403, 404, 409, 413, 422})
_TERMINAL = frozenset({401, 403, 404})  # An agent ends, or begins anew; a proxy says these of a server that is away.

Result = TypeVar("Result")
_decode_registered = msgspec.json.Decoder(Registered).decode
_decode_polled = msgspec.json.Decoder(Polled).decode
_decode_standings = msgspec.json.Decoder(Standings).decode
_decode_kept = msgspec.json.Decoder(Kept).decode


class HttpServer:
    """Roost's own API as agents ask it: a ``roost.compute.agent.server_port.Server``, over connections that are kept.

    Args:
        url: where ``/v1`` is found below.
        token: that lets the agent in; None: none is sent.
        draw: gives a fresh number, 0 <= number < 1.
        pause: waits so many seconds, and says whether to go on; else the agent is to stop.

    Raises:
        BadSettings: the address is none.
    """

    def __init__(
        self, url: str, *, token: str | None, draw: Callable[[], float], pause: Callable[[float], bool]
    ) -> None:
        self._url, self._draw, self._pause = url, draw, pause
        self._headers = {"x-auth-token": token} if token else {}
        self._lock = Lock()
        self._idle = [self._wire()]
        self._is_closed = False
        self._runs: dict[str, str] = {}  # by host: as it was registered
        self._failing_count = 0  # questions that are asked again

    def register(self, host: str, registration: Registration) -> Registered:
        """See ``Server``."""
        try:
            told = self._ask("PUT", f"/v1/agents/{quote(host, safe='')}", registration, told=_decode_registered)
        except NotFound:
            raise BadSettings(self._url, "no agents are known there: it is no server of Roost") from None
        self._runs[host] = registration.run
        return told

    def report(self, host: str, node: str, facts: HostFacts) -> None:
        """See ``Server``."""
        path = f"/v1/agents/{quote(host, safe='')}/nodes/{quote(node, safe='')}{self._run_query(host)}"
        self._ask("PUT", path, facts, told=_discard)

    def poll(self, poll: Poll) -> Polled:
        """See ``Server``."""
        return self._ask("POST", "/v1/orders/poll", poll, told=_decode_polled)

    def answer(self, order_id: int, answer: OrderAnswer) -> None:
        """See ``Server``."""
        try:
            kept = self._ask("POST", f"/v1/orders/{order_id}/answer", answer, told=_decode_kept)
        except Conflict as error:
            raise BadSettings(self._url, str(error)) from None
        if not kept.is_wanted:
            raise Conflict(f"the order {order_id} was withdrawn: undo what was done for it")

    def deregister(self, host: str) -> None:
        """See ``Server``."""
        self._ask("DELETE", f"/v1/agents/{quote(host, safe='')}{self._run_query(host)}", told=_discard)

    def standings(self, host: str, uuids: Collection[str]) -> dict[str, Standing]:
        """Return what is known of instances of which a host found something; those unknown are left out.

        Raises:
            BadSettings, NotFound, BadRequest, Unavailable: as for ``Server``.
        """
        wanted, found = sorted(uuids), dict[str, Standing]()
        path = f"/v1/agents/{quote(host, safe='')}/standings"
        for at in range(0, len(wanted), ASKED_MAX):
            asked = Holders(instances=tuple(wanted[at : at + ASKED_MAX]))
            found |= self._ask("POST", path, asked, told=_decode_standings).instances
        return found

    def close(self) -> None:
        """Close the connections, those in use when they are answered."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for wire in idle:
            wire.close()

    def _run_query(self, host: str) -> str:
        """Return the query that says which run asks, as it was registered."""
        run = self._runs.get(host)
        return "" if run is None else f"?run={run}"

    def _ask(
        self, method: str, path: str, body: msgspec.Struct | None = None, *, told: Callable[[bytes], Result]
    ) -> Result:
        """Ask until there is an answer, and return what is told.

        Raises:
            BadSettings, NotFound, Conflict, BadRequest: as the answer says.
            Unavailable: ``pause`` says that the agent is to stop.
        """
        pause_s = _PAUSE_FIRST_S
        sent = None if body is None else msgspec.to_builtins(body)
        with self._log_outage() as unanswered:
            while True:
                try:
                    status, text = self._send(method, path, sent)
                    problem = problem_of(status, text)
                    if status < HTTPStatus.MULTIPLE_CHOICES or self._is_refusal(status, text):
                        self._check(status, problem)
                        return told(text)
                except LOST as error:
                    problem = str(error) or type(error).__name__
                except msgspec.MsgspecError as error:
                    problem = f"its answer cannot be understood: {error}"
                unanswered(problem)
                if not self._pause(pause_s * (0.5 + self._draw())):
                    raise Unavailable(f"{self._url} did not answer: {problem}")
                pause_s = min(2 * pause_s, _PAUSE_LAST_S)

    @contextmanager
    def _log_outage(self) -> Iterator[Callable[[str], None]]:
        """Give what is told that a question is not answered, so that of many at once the first is logged, and the end.

        The end is when the last of them is answered, be it with a refusal.
        """
        is_counted = False

        def unanswered(problem: str) -> None:
            nonlocal is_counted
            if is_counted:
                return
            is_counted = True
            with self._lock:
                self._failing_count += 1
                if self._failing_count == 1:
                    log.event("server_is_away", server=self._url, problem=problem)

        try:
            yield unanswered
        except Unavailable:
            is_counted = False  # The agent stops: nobody is back.
            raise
        finally:
            if is_counted:
                with self._lock:
                    self._failing_count -= 1
                    if not self._failing_count:
                        log.event("server_is_back", server=self._url)

    def _is_refusal(self, status: int, text: bytes) -> bool:
        """Say whether a server of Roost refuses, and not something that stands before it.

        Who was let in once asks again where its server seems to be gone without a word of it.
        """
        return status in _REFUSALS and (status not in _TERMINAL or not self._runs or is_explained(text))

    def _send(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        """Ask once, or twice where the other side had closed the connection meanwhile.

        Raises:
            LOST: it was not answered.
        """
        with self._borrow_wire() as wire:
            was_open = wire.is_open
            try:
                return wire.send(method, path, body, version=None)
            except LOST:
                if not was_open:
                    raise
            return wire.send(method, path, body, version=None)

    @contextmanager
    def _borrow_wire(self) -> Iterator[Wire]:
        with self._lock:
            wire = self._idle.pop() if self._idle else None
        wire = wire or self._wire()
        try:
            yield wire
        finally:
            with self._lock:
                is_kept = not self._is_closed
                if is_kept:
                    self._idle.append(wire)
            if not is_kept:
                wire.close()

    def _wire(self) -> Wire:
        return Wire(self._url, headers=self._headers, timeout_s=WAIT_MAX_S + _ANSWER_S, setting=SETTING)

    def _check(self, status: int, problem: str) -> None:
        match status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                raise BadSettings(self._url, problem)
            case HTTPStatus.NOT_FOUND:
                raise NotFound("agent or order", problem, message=problem)
            case HTTPStatus.CONFLICT:
                raise Conflict(problem)
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise BadRequest(problem)


class InstanceLookup:
    """Knows what became of instances, as the server of an agent knows it.

    Args:
        server: is asked.
        host: name of the service of the agent.
    """

    def __init__(self, server: HttpServer, host: str) -> None:
        self._server, self._host = server, host

    def standings(self, uuids: Collection[str]) -> dict[str, Standing]:
        """See ``roost.compute.inventory.stale_allocations.Instances``."""
        return self._server.standings(self._host, uuids)


def _discard(_text: bytes) -> None:
    """Read an answer that says no more than that it was done."""
