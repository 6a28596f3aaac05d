"""The server of a client: its address, its credentials, and the bytes of a request to it."""

import ssl
from collections.abc import Mapping
from typing import Protocol

import msgspec

from roost.client.library.exchange import Attempt
from roost.client.library.http_messages import encode_request
from roost.client.wire import address_of, check_header_text
from roost.errors import BadRequest

CONNECT_S = 10.0  # limit for a connection, TLS included
# Seconds without a byte after which a stream of events is lost; the server sends heartbeats more often.
SILENCE_S = 120.0
_EVENTS = "text/event-stream"


class Login(Protocol):
    """Credentials that expire, such as ``roost.client.keystone_login.KeystoneLogin``. Threads may share them."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers of a request, with a valid token."""

    def renew(self) -> None:
        """Fetch a new token for the next request."""


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a client."""

    timeout_s: float = 60.0  # for a call, with its retries
    connections_max: int = 10  # further calls wait for a connection

    def __post_init__(self) -> None:
        if self.timeout_s <= 0 or self.connections_max < 1:
            raise ValueError("timeout_s must be above 0, and connections_max at least 1")


class Endpoint:
    """The address of a server, and what a request to it needs.

    Args:
        url: of the server, without ``/v1``.
        token: of the client; empty: the login has one, or the server needs none.
        tls: certificates for https; None: those of this machine.

    Raises:
        BadRequest: the URL or the token is invalid.
    """

    def __init__(self, url: str, *, token: str, tls: ssl.SSLContext | None) -> None:
        try:
            address = address_of(url)
        except ValueError as error:
            raise BadRequest(
                f"the URL of a server is http://HOST:PORT or https://HOST:PORT, not {url!r}: {error}"
            ) from None
        check_header_text("the token", token)
        self.url, self.host, self.is_tls = url.rstrip("/"), address.host, address.is_tls
        self.port = address.port or (443 if address.is_tls else 80)
        self.tls = (tls or ssl.create_default_context()) if address.is_tls else None
        self._prefix = address.prefix
        name = f"[{self.host}]" if ":" in self.host else self.host
        host = name if address.port is None else f"{name}:{address.port}"
        self._headers = {"host": host, "accept": "application/json"} | ({"x-auth-token": token} if token else {})

    def encode(self, attempt: Attempt, *, login: Mapping[str, str]) -> bytes:
        """Return the bytes of a request.

        Args:
            login: headers of the login; empty: none.
        """
        call = attempt.call
        headers = {**self._headers, **login}
        if call.body:
            headers["content-type"] = "application/json"
        if call.key:
            headers["idempotency-key"] = call.key
        return encode_request(call.method, self._prefix + call.path, headers=headers, body=call.body)

    def encode_events(self, path: str, *, after: str, login: Mapping[str, str]) -> bytes:
        """Return the bytes of a request for events.

        Args:
            after: id of the newest known event; empty: begin with the next one.
        """
        headers = {**self._headers, **login, "accept": _EVENTS} | ({"last-event-id": after} if after else {})
        return encode_request("GET", self._prefix + path, headers=headers, body=b"")
