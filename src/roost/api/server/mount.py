"""Several APIs on one port, distinguished by path prefix."""

from collections.abc import Awaitable, Callable, Mapping

from roost.api.asgi import Scope
from roost.api.http import Receive, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Mount:
    """ASGI applications by path prefix.

    Args:
        below: applications by prefix, such as ``/v1``.
        otherwise: the application for all other paths.
    """

    def __init__(self, below: Mapping[str, Application], *, otherwise: Application) -> None:
        self._below = below
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request."""
        first = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        await self._below.get(f"/{first}", self._otherwise)(scope, receive, send)
