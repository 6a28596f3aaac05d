"""Reading of request bodies, with limits per body and per process."""

from roost.api.http import Receive, Request
from roost.api.problems import Problem, busy
from roost.model.settings.placement_settings import Placement as Settings


class BodyReader:
    """Reads request bodies, and counts the bytes of all requests in flight.

    Args:
        settings: the limits.
    """

    def __init__(self, settings: Settings) -> None:
        self._size_max = settings.body_max_bytes
        self._sum_max = settings.bodies_max_bytes
        self._values_max = settings.body_values_max
        self.held_bytes = 0

    async def read(self, request: Request, receive: Receive, *, route_max: int | None) -> None:
        """Read the body of a request, and count its bytes until ``release``, also after an error.

        Args:
            route_max: maximum bytes of the route; None: the limit of the settings.

        Raises:
            Problem: 413 or 503, a limit is reached; 400, the client disconnected.
        """
        size_max = self._size_max if route_max is None else min(self._size_max, route_max)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > size_max:
            raise self._too_large(route_max)
        parts: list[bytes] = []
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "The client disconnected before the end of its request.")
            part = message.get("body", b"")
            if request.body_bytes + len(part) > size_max:
                raise self._too_large(route_max)
            if self.held_bytes + len(part) > self._sum_max:
                raise busy(f"bodies of {self.held_bytes:,} bytes are in progress", "bodies_max_bytes")
            request.body_bytes += len(part)
            self.held_bytes += len(part)
            parts.append(part)
            if not message.get("more_body", False):
                request.body = b"".join(parts) if len(parts) > 1 else parts[0]
                request.is_body_read = True
                self._check_values(request.body)
                return

    def release(self, request: Request) -> None:
        """Stop counting the body of a request."""
        self.held_bytes -= request.body_bytes
        request.body_bytes = 0

    def _check_values(self, body: bytes) -> None:
        """Refuse a body with many small values: decoded, they take up to a hundred times their size in memory."""
        if len(body) <= self._values_max:  # Each value takes at least one byte.
            return
        # Commas in texts count, too: only decoding could distinguish them.
        count = body.count(b",") + body.count(b"[") + body.count(b"{")
        if count > self._values_max:
            text = f"The body has more than {self._values_max:,} values (limit placement.body_values_max)."
            raise Problem(413, text)

    def _too_large(self, route_max: int | None) -> Problem:
        if route_max is not None and route_max < self._size_max:
            return Problem(413, f"The body is larger than {route_max:,} bytes, the limit of this path.")
        return Problem(413, f"The body is larger than {self._size_max:,} bytes (limit placement.body_max_bytes).")
