"""Send raw requests over HTTP and read the answers; invalid requests are sent unchanged."""

import http.client
import json
import shlex
import socket
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 60
ADMIN_HEADERS = (("x-auth-token", "admin"), ("openstack-api-version", "placement 1.39"))


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request; headers and body are sent unchanged, with only host and content-length added."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    marks: frozenset[str] = frozenset()  # names of rules that may excuse a difference

    def as_curl(self, address: str) -> str:
        """Return the curl command line that sends the same request."""
        words = ["curl", "-i", "--path-as-is", "-X", self.method]
        for name, value in self.headers:
            words += ["-H", f"{name}: {value}" if value else f"{name};"]
        # By default curl adds a content type.
        if self.body is not None and "content-type" not in {name for name, _ in self.headers}:
            words += ["-H", "content-type:"]
        text = "" if self.body is None else f" --data-binary {_shell_quote(self.body)}"
        return " ".join(shlex.quote(word) for word in [*words, address + self.path]) + text

    def header(self, name: str) -> str | None:
        """Return the last value of a header."""
        return next((value for key, value in reversed(self.headers) if key.lower() == name), None)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer."""

    status: int
    headers: dict[str, str] = field(repr=False)  # names in lower case
    body: bytes

    @cached_property
    def document(self) -> Any:
        """Return the decoded body, or None if it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class Connection:
    """A connection to one server, which is kept alive if possible."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        parts = urlsplit(self.address)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._prefix = parts.path
        self._socket: socket.socket | None = None

    def ask(self, request: Request) -> Answer:
        """Send a request and read its answer; repeat it if the server had closed the kept connection."""
        is_reused = self._socket is not None
        try:
            return self._ask(request)
        except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
            self.close()
            if not is_reused:
                raise
            return self._ask(request)

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, request: Request) -> Answer:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(self._message(request))
        with http.client.HTTPResponse(self._socket, method=request.method) as response:
            response.begin()
            body = response.read()
            answer = Answer(
                status=response.status, headers={key.lower(): value for key, value in response.getheaders()}, body=body
            )
            is_over = response.will_close
        if is_over:
            self.close()
        return answer

    def _message(self, request: Request) -> bytes:
        names = {name.lower() for name, _ in request.headers}
        lines = [f"{request.method} {self._prefix}{request.path} HTTP/1.1"]
        if "host" not in names:
            lines.append(f"host: {self._address[0]}:{self._address[1]}")
        lines += [f"{name}: {value}" for name, value in request.headers]
        if request.body is not None and not names & {"content-length", "transfer-encoding"}:
            lines.append(f"content-length: {len(request.body)}")
        return "\r\n".join([*lines, "", ""]).encode() + (request.body or b"")


def _shell_quote(body: bytes) -> str:
    try:
        return shlex.quote(body.decode())
    except UnicodeDecodeError:
        return "$'" + "".join(f"\\x{byte:02x}" for byte in body) + "'"
