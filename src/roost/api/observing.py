"""What programs that watch a server ask: whether it is well, and its numbers."""

from collections.abc import Awaitable, Callable

from roost.api.asgi import Receive, Scope, Send
from roost.observe import metrics

Health = Callable[[], Awaitable[str | None]]


class Observing:
    """``/healthz`` and ``/metrics`` as an ASGI application.

    Args:
        health: says what is wrong, in a sentence; None: nothing.
    """

    def __init__(self, health: Health) -> None:
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        content_type = "text/plain; charset=utf-8"
        if scope["method"] not in {"GET", "HEAD"}:
            status, body = 405, b"only GET is answered here\n"
        elif scope["path"] == "/healthz":
            problem = await self._health()
            status, body = (200, b"ok\n") if problem is None else (503, f"{problem}\n".encode())
        elif scope["path"] == "/metrics":
            status, body, content_type = 200, metrics.text(), metrics.CONTENT_TYPE
        else:
            status, body = 404, b"here are /healthz and /metrics\n"
        headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
