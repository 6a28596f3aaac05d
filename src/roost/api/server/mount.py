"""One port for several APIs: which one is asked is told by the path."""

from collections.abc import Awaitable, Callable, Mapping

from roost.api.asgi import Scope
from roost.api.http import Receive, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Mount:
    """ASGI applications by the beginnings of their paths.

    Args:
        below: by prefix, such as ``/v1``.
        otherwise: what answers everything else.
    """

    def __init__(self, below: Mapping[str, Application], *, otherwise: Application) -> None:
        self._below = below
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request on."""
        first = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        await self._below.get(f"/{first}", self._otherwise)(scope, receive, send)
