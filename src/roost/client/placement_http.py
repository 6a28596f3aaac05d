"""A client of a Placement API over HTTP, with a persistent connection and retries."""

import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

from roost.client.outage_text import describe_outage
from roost.client.service_http import Login, ServiceHttp
from roost.client.wire import LOST, Wire, decode_json
from roost.errors import BadSettings, PlacementGone
from roost.model.placement.microversions import NEWEST, SAME_SUBTREE
from roost.model.placement.placement_api import Answer, newest_minor

SETTING = "placement.remote_url"
TOKEN_VARIABLE = "ROOST_PLACEMENT_TOKEN"  # noqa: S105  # the name of the variable, not a token
OLDEST = SAME_SUBTREE.minor  # minor version; the queries need it
# Address of a remote Placement that is found in Keystone's catalog.
CATALOG = "catalog"


class Connection:
    """A connection to a Placement API, for one thread at a time.

    Args:
        url: URL of the API, without ``/allocation_candidates``.
        token: of the client; None: no token.
        timeout_s: timeout of an answer, > 0.
        pause: waits the given seconds.
        login: fetches tokens, in place of ``token``.
        tls: certificates for https; None: those of this machine.

    Raises:
        BadSettings: the URL is invalid, or the versions of the server are too old.
        PlacementGone: the server does not answer, or refuses the client.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        timeout_s: float,
        pause: Callable[[float], None] = time.sleep,
        login: Login | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        headers = {"x-auth-token": token} if token else {}
        wire = Wire(url, headers=headers, timeout_s=timeout_s, setting=SETTING, tls=tls)
        self._http = ServiceHttp(wire, login=login, pause=pause)
        self.pause = pause
        self._version: str | None = None  # None for the request of the versions.
        try:
            self.minor = self._newest()
        except BaseException:
            self.close()
            raise
        self._version = f"1.{self.minor}"

    def _newest(self) -> int:
        body = self.request("GET", "/").body
        try:
            newest = newest_minor(body)
        except ValueError as error:
            raise BadSettings(SETTING, f"is not a Placement API: {error}") from None
        if newest < OLDEST:
            raise BadSettings(SETTING, f"has microversions up to 1.{newest}, and 1.{OLDEST} is needed")
        return min(newest, NEWEST.minor)

    def get(self, path: str) -> Any:
        """Return the body of a response; None: not found."""
        answer = self.request("GET", path)
        if answer.status == 404:
            return None
        if answer.status != 200 or not isinstance(answer.body, dict):
            raise PlacementGone(f"it answers {path.partition('?')[0]} with {answer.problem}")
        return answer.body

    def request(self, method: str, path: str, body: object = None) -> Answer:
        """Send an idempotent request, with retries.

        Raises:
            PlacementGone: no try was answered, or the server refuses the client; the request may have been carried out.
        """
        try:
            status, text, is_repeated = self._http.send(method, path, body, version=self._version)
        except LOST as error:
            raise PlacementGone(describe_outage(error, self._http.wire.url)) from None
        if status == 503:
            raise PlacementGone("it answers with status 503")
        if status in {401, 403}:
            raise PlacementGone(f"it refuses this client: status {status}; {self._advice}")
        return _answer(f"{method} {path.partition('?')[0]}", status, text, is_repeated=is_repeated)

    @property
    def _advice(self) -> str:
        return (
            f"set a token in ${TOKEN_VARIABLE}"
            if self._http.login is None
            else "give its user the role of a service or an administrator"
        )

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._http.close()


def _answer(request: str, status: int, text: bytes, *, is_repeated: bool) -> Answer:
    answer = Answer(status, decode_json(text), is_repeated)
    if status >= 500:
        raise PlacementGone(f"it answers {request} with {answer.problem}")
    return answer


def part(record: Mapping[str, Any] | None, name: str) -> Any:
    """Return a member of a response.

    Raises:
        PlacementGone: the member is missing.
    """
    try:
        return (record or {})[name]
    except LookupError:
        raise PlacementGone(f"its answer has no {name}") from None
