"""HTTP/1.1 messages as bytes: requests, and a parser of answers."""

import http.client
from collections.abc import Mapping

import httptools

# Maximum sizes of an answer, in bytes; an audit of 100,000 hosts has some 100 MiB.
_BODY_MAX_BYTES, _HEAD_MAX_BYTES = 512 * 2**20, 2**17


def encode_request(method: str, target: str, *, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the bytes of a request.

    Args:
        headers: without line breaks; content-length is added.
    """
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
    if body or method in {"POST", "PUT", "PATCH"}:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class AnswerParser:
    """The parser of one answer, for received bytes in parts of any size."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_head_complete = self.is_complete = False
        self.has_extra = False  # whether more bytes followed the answer: the connection cannot be used again
        self._is_kept = False  # whether the server keeps the connection
        self._parts: list[bytes] = []
        self._size = 0
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Parse received bytes.

        Raises:
            http.client.HTTPException: they are no HTTP, or exceed a limit.
        """
        if self.is_complete:
            self.has_extra = True
            return
        if not self.is_head_complete:
            self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise http.client.BadStatusLine(f"its answer is not HTTP: {error}") from None
        if self._size > (_BODY_MAX_BYTES if self.is_head_complete else _HEAD_MAX_BYTES):
            raise http.client.HTTPException("its answer is too large")

    def end(self) -> None:
        """Note that the server has closed the connection.

        Raises:
            http.client.HTTPException: the answer is incomplete.
        """
        has_length = "content-length" in self.headers or "transfer-encoding" in self.headers
        if not self.is_head_complete or (has_length and not self.is_complete):
            raise http.client.RemoteDisconnected("it closed the connection without a complete answer")
        self.is_complete = True

    def take_body(self) -> bytes:
        """Return the bytes of the body since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)

    @property
    def can_continue(self) -> bool:
        """Whether the connection can be used again."""
        return self.is_complete and not self.has_extra and self._is_kept

    def on_message_begin(self) -> None:
        """Begin an answer; a second one is extra."""
        self.has_extra = self.is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header."""
        if not self.is_complete:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Receive the end of the head; an interim answer is skipped."""
        if self.is_complete:
            return
        self.status = self._parser.get_status_code()
        if self.status < http.client.OK:
            self.headers = {}
        else:
            self.is_head_complete, self._size = True, 0

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        if not self.is_complete:
            self._size += len(body)
            self._parts.append(body)

    def on_message_complete(self) -> None:
        """Receive the end of an answer."""
        if self.is_head_complete and not self.is_complete:
            self.is_complete, self._is_kept = True, bool(self._parser.should_keep_alive())
