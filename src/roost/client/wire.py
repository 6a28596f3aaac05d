"""Requests over HTTP and what comes back, one at a time, on a connection that is kept."""

import http.client
import json
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from roost.errors import BadRequest, BadSettings

# What a request may fail with where it is not answered.
LOST = (OSError, http.client.HTTPException)
_PROBLEM_MAX = 500  # characters of an error that is none of Roost's
# An answer of more bytes is none; the candidates of 100,000 hosts are a quarter of it.
_ANSWER_MAX_BYTES = 512 * 2**20
_CHUNK_BYTES = 2**20  # bytes that are read at once, at most


class Address(NamedTuple):
    """Where a server is."""

    host: str
    port: int | None  # None: that of the scheme
    prefix: str  # of all paths, without a slash at its end
    is_tls: bool


def address_of(url: str) -> Address:
    """Return what an address of a server says.

    Raises:
        ValueError: it is none.
    """
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port
    if host is None or parts.scheme not in {"http", "https"} or parts.username is not None:
        raise ValueError("it names no server")
    host.encode("idna")  # As whoever looks it up does.
    if not _is_one_word(host) or not (_is_one_word(parts.path) and parts.path.isascii()):
        raise ValueError("it holds what no request can say")
    return Address(host, port, parts.path.rstrip("/"), parts.scheme == "https")


def is_header_text(text: str) -> bool:
    """Say whether a header can hold a text, as a token."""
    return text.isprintable() and all(letter <= "\xff" for letter in text)


def parse_url_option(url: str, *, token: str) -> Address:
    """Return the address of a server that a command is given, with the token for it.

    Raises:
        BadRequest: the address is none, or the token cannot be sent.
    """
    try:
        address = address_of(url)
    except ValueError:
        raise BadRequest(f"--url must be http://HOST:PORT or https://HOST:PORT, got {url!r}") from None
    check_header_text("--token", token)
    return address


def check_header_text(option: str, text: str) -> None:
    """Refuse the value of an option that no header can hold; it may be a token, so it is not shown.

    Raises:
        BadRequest: it is one.
    """
    if not is_header_text(text):
        raise BadRequest(f"{option} holds a letter that no header can hold, as a line break")


class Wire:
    """A way to a server; one thread uses it at a time.

    Args:
        url: paths are found below it.
        headers: of every request, as the token that lets us in.
        timeout_s: for which one answer is waited for, and for so long again until it has come whole, > 0.
        setting: where the address stands, for the error.

    Raises:
        BadSettings: the address is none, or a header cannot be sent.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str], timeout_s: float, setting: str) -> None:
        try:
            self._host, self._port, self._prefix, is_tls = address_of(url)
        except ValueError:
            raise BadSettings(
                setting, "must be http://HOST:PORT/PATH or https://…, without name and password"
            ) from None
        for name, value in headers.items():
            if not is_header_text(value):  # It may be a token, so it is not shown.
                raise BadSettings(name, "holds a letter that no header can hold, as a line break")
        self._tls = ssl.create_default_context() if is_tls else None
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self._headers = {"accept": "application/json", **headers}

    @property
    def is_open(self) -> bool:
        """Whether a connection is kept, which the other side may have closed."""
        return self._connection is not None

    def send(self, method: str, path: str, body: object = None, *, version: str | None) -> tuple[int, bytes]:
        """Send a request once; return status and body of its answer.

        Args:
            body: as JSON; None: there is none.
            version: of the Placement API, as ``1.36``; None: none is named.

        Raises:
            LOST: it was not answered; the connection is closed.
        """
        headers = dict(self._headers)
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
                    http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
                    if self._tls is None
                    else http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=self._tls)
                )
            connection.request(method, self._prefix + path, body=data, headers=headers)
            answer = connection.getresponse()
            return answer.status, self._read_body(answer)
        except LOST:
            self.close()
            raise

    def _read_body(self, answer: http.client.HTTPResponse) -> bytes:
        """Read a body, from a server that may send a byte now and then, or never end."""
        found, end_s = bytearray(), time.monotonic() + self._timeout_s
        while part := answer.read1(_CHUNK_BYTES):
            found += part
            if len(found) > _ANSWER_MAX_BYTES:
                raise http.client.HTTPException(f"its answer has more than {_ANSWER_MAX_BYTES:,} bytes")
            if time.monotonic() > end_s:
                raise TimeoutError(f"its answer did not end in {self._timeout_s:g} s")
        if answer.length:  # Unlike other ways to read, this one says nothing of what is missing.
            raise http.client.IncompleteRead(bytes(found), answer.length)
        answer.read()  # Nor does it end the answer, so that another can come.
        return bytes(found)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _is_one_word(text: str) -> bool:
    return text.isprintable() and " " not in text


def problem_of(status: int, text: bytes) -> str:
    """Return what an error of Roost's own API says of itself, in one line."""
    body = decode_json(text)
    detail = body.get("detail") if isinstance(body, dict) else None
    return " ".join(str(detail or f"status {status}").split())[:_PROBLEM_MAX]


def is_explained(text: bytes) -> bool:
    """Say whether an error is told as Roost's own API tells it."""
    body = decode_json(text)
    return isinstance(body, dict) and "detail" in body


def decode_json(text: bytes) -> Any:
    """Return a body of JSON, decoded; None: it is none."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
