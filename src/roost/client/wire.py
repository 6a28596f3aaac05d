"""HTTP requests and responses, one at a time, on a persistent connection."""

import http.client
import json
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from roost.errors import BadRequest, BadSettings

# Errors of a request without an answer.
LOST = (OSError, http.client.HTTPException)
_PROBLEM_MAX = 500  # characters of an error message of the server
# Maximum size of an answer; candidates of 100,000 hosts need a quarter of it.
_ANSWER_MAX_BYTES = 512 * 2**20
_CHUNK_BYTES = 2**20  # maximum size of one read
_CONNECT_S = 10.0  # limit for a connection, TLS included
# The kernel closes a connection to a dead machine after 20 s, even during a long poll. A busy server keeps its own.
_IDLE_S, _PROBE_S, _PROBES, _UNACKNOWLEDGED_MS = 5, 5, 3, 20_000


class Address(NamedTuple):
    """The address of a server."""

    host: str
    port: int | None  # None: the default of the scheme
    prefix: str  # of all paths, without a trailing slash
    is_tls: bool


def address_of(url: str) -> Address:
    """Parse the URL of a server.

    Raises:
        ValueError: the URL is invalid.
    """
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port
    if host is None or parts.scheme not in {"http", "https"} or parts.username is not None:
        raise ValueError("it has no server")
    host.encode("idna")  # Raises for names that the name lookup would refuse.
    if not _is_one_word(host) or not (_is_one_word(parts.path) and parts.path.isascii()):
        raise ValueError("it has characters that a request cannot contain")
    return Address(host, port, parts.path.rstrip("/"), parts.scheme == "https")


def is_header_text(text: str) -> bool:
    """Return whether a header can hold a text, such as a token."""
    return text.isprintable() and all(letter <= "\xff" for letter in text)


def parse_url_option(url: str, *, token: str) -> Address:
    """Parse the URL option of a command, and check its token.

    Raises:
        BadRequest: the URL or the token is invalid.
    """
    try:
        address = address_of(url)
    except ValueError:
        raise BadRequest(f"--url must be http://HOST:PORT or https://HOST:PORT, got {url!r}") from None
    check_header_text("--token", token)
    return address


def check_prefix(url: str, answer: bytes) -> None:
    """Refuse a URL that ends with the version of the API, if an answer shows that the version is repeated.

    Raises:
        BadRequest: the URL ends with the version.
    """
    shorter = url.rstrip("/").removesuffix("/v1")
    if shorter != url.rstrip("/") and b"there is no /v1/v1" in answer:
        raise BadRequest(f"{url} must not end with /v1; use {shorter}")


def check_header_text(option: str, text: str) -> None:
    """Refuse an option's value if a header cannot contain it; the error omits the value, which may be a token.

    Raises:
        BadRequest: the value is invalid.
    """
    if not is_header_text(text):
        raise BadRequest(f"{option} has a character that a header cannot contain, such as a line break")


class Wire:
    """A connection to a server, for one thread at a time.

    Args:
        url: prefix of all paths.
        headers: of every request, such as a token.
        timeout_s: limit for the headers of an answer, and again for its body, > 0.
        setting: name of the setting with the URL, for errors.
        connect_s: limit for opening a connection, > 0.
        tls: certificates for https; None: those of this machine.

    Raises:
        BadSettings: the URL or a header is invalid.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
        setting: str,
        connect_s: float = _CONNECT_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.url, self.token = url, headers.get("x-auth-token", "")
        try:
            self._host, self._port, self._prefix, is_tls = address_of(url)
        except ValueError:
            raise BadSettings(
                setting, "must be http://HOST:PORT/PATH or https://…, without name and password"
            ) from None
        for name, value in headers.items():
            if not is_header_text(value):  # The error does not show the value, which may be a token.
                raise BadSettings(name, "has a character that a header cannot contain, such as a line break")
        self._tls = (tls or ssl.create_default_context()) if is_tls else None
        self._timeout_s, self._connect_s = timeout_s, min(connect_s, timeout_s)
        self._connection: http.client.HTTPConnection | None = None
        self._headers = {"accept": "application/json", **headers}

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, which the server may have closed."""
        return self._connection is not None

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str | None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Send a request once; return the status and body of its answer.

        Args:
            body: sent as JSON; None: no body.
            version: of the Placement API, such as ``1.36``; None: no version header.
            extra_headers: of this request, such as a token.

        Raises:
            LOST: no answer; the connection is closed.
        """
        headers = {**self._headers, **(extra_headers or {})}
        if version is not None:
            headers["openstack-api-version"] = f"placement {version}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        try:
            connection = self._connection
            if connection is None:
                connection = self._connection = (
                    http.client.HTTPConnection(self._host, self._port, timeout=self._connect_s)
                    if self._tls is None
                    else http.client.HTTPSConnection(self._host, self._port, timeout=self._connect_s, context=self._tls)
                )
            if connection.sock is None:
                self._connect(connection)
            connection.request(method, self._prefix + path, body=data, headers=headers)
            answer = connection.getresponse()
            return answer.status, self._read_body(answer)
        except LOST:
            self.close()
            raise

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        """Open a connection, set the timeout of its answers, and let the kernel detect a dead machine."""
        connection.connect()
        connected: socket.socket = connection.sock
        connected.settimeout(self._timeout_s)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            (socket.TCP_KEEPIDLE, _IDLE_S),
            (socket.TCP_KEEPINTVL, _PROBE_S),
            (socket.TCP_KEEPCNT, _PROBES),
            (socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS),
        ):
            connected.setsockopt(socket.IPPROTO_TCP, option, value)

    def _read_body(self, answer: http.client.HTTPResponse) -> bytes:
        """Read a body within the limits of size and time."""
        body, end_s = bytearray(), time.monotonic() + self._timeout_s
        while part := answer.read1(_CHUNK_BYTES):
            body += part
            if len(body) > _ANSWER_MAX_BYTES:
                raise http.client.HTTPException(f"its answer has more than {_ANSWER_MAX_BYTES:,} bytes")
            if time.monotonic() > end_s:
                raise TimeoutError(f"its answer did not end in {self._timeout_s:g} s")
        if answer.length:  # Unlike ``read``, ``read1`` does not report a truncated body.
            raise http.client.IncompleteRead(bytes(body), answer.length)
        answer.read()  # Unlike ``read1``, this ends the answer. The next request requires that.
        return bytes(body)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _is_one_word(text: str) -> bool:
    return text.isprintable() and " " not in text


def problem_of(status: int, text: bytes) -> str:
    """Return the message of an error of Roost's own API, in one line."""
    body = decode_json(text)
    detail = body.get("detail") if isinstance(body, dict) else None
    return " ".join(str(detail or f"status {status}").split())[:_PROBLEM_MAX]


def is_explained(text: bytes) -> bool:
    """Return whether an error has the format of Roost's own API."""
    body = decode_json(text)
    return isinstance(body, dict) and "detail" in body


def decode_json(text: bytes) -> Any:
    """Decode a JSON body; None: not JSON."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
