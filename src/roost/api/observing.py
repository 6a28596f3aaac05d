"""What programs that watch a server ask: whether it is well, and its numbers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

from roost.api.asgi import Scope
from roost.api.placement.request import Receive, Send
from roost.errors import RoostError
from roost.observe import metrics
from roost.placement.current import Current
from roost.placement.serving import Serving

Health = Callable[[], Awaitable[str | None]]
_PATIENCE_S = 5.0


def health_of(serving: Serving) -> Health:
    """Return what asks the thread that answers whether it can, which reads the database too."""

    async def health() -> str | None:
        outcome: Future[str] = Future()
        try:
            serving.submit(_look, outcome)
            await asyncio.wait_for(asyncio.wrap_future(outcome), _PATIENCE_S)
        except TimeoutError:
            return f"the thread that answers did not do so for {_PATIENCE_S:g} s"
        except RoostError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001  # whatever it is, whoever watches must hear of it
            return f"a fault of roost itself: {error!r}"
        return None

    return health


def _look(_current: Current) -> str:
    return "well"


class Observing:
    """``/healthz`` and ``/metrics`` as an ASGI application.

    Args:
        health: says what is wrong, in a sentence; None: nothing.
        others: paths beside these two, for whoever asks for none of them.
    """

    def __init__(self, health: Health, *, others: Sequence[str] = ()) -> None:
        self._health = health
        *first, last = *others, "/healthz", "/metrics"
        self._nothing = f"here are {', '.join(first)} and {last}\n".encode()

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
            status, body = 404, self._nothing
        headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
