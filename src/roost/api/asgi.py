"""ASGI around an application: bytes in, bytes out, within limits."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from roost.api.placement.application import Application, new_request_id
from roost.api.placement.request import Request, Response
from roost.api.problems import Problem
from roost.placement.serving import Serving

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class AsgiOutcome:
    """An outcome that is told from the serving thread and awaited on a loop."""

    __slots__ = ("_future", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[Response] = loop.create_future()

    def set_running_or_notify_cancel(self) -> bool:
        """Say whether the client still waits."""
        return not self._future.cancelled()

    def set_result(self, result: Response, /) -> None:
        """Take the answer."""
        self._loop.call_soon_threadsafe(self._settle, result, None)

    def set_exception(self, exception: BaseException, /) -> None:
        """Take an error instead."""
        self._loop.call_soon_threadsafe(self._settle, None, exception)

    def _settle(self, result: Response | None, error: BaseException | None) -> None:
        if self._future.done():
            return
        if error is not None:
            self._future.set_exception(error)
        elif result is not None:
            self._future.set_result(result)

    async def wait(self) -> Response:
        """Return the answer."""
        return await self._future


class AsgiApplication:
    """The Placement API as an ASGI application."""

    def __init__(self, application: Application, serving: Serving, *, body_max: int = 16 * 2**20) -> None:
        self._application = application
        self._serving = serving
        self._body_max = body_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http", scope["type"]
        request = _request(scope)
        try:
            request.body = await self._body(receive)
            response = await self._answer(request)
        except Exception as error:  # noqa: BLE001  # everybody gets an answer
            response = self._application.fail(request, error)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _body(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "the client left before its request had ended")
            part = message.get("body", b"")
            size += len(part)
            if size > self._body_max:
                raise Problem(413, f"The body is larger than {self._body_max:,} bytes (limit body_max).")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _answer(self, request: Request) -> Response:
        entered = self._application.enter(request)
        if isinstance(entered, Response):
            return entered
        outcome = AsgiOutcome(asyncio.get_running_loop())
        self._serving.submit(entered, outcome)
        return self._application.finish(request, await outcome.wait())


def _request(scope: Scope) -> Request:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    prefix = scope.get("root_path", "")
    return Request(
        method=scope["method"],
        path=scope["path"].removeprefix(prefix),
        query_string=scope["query_string"].decode("latin-1"),
        headers=headers,
        prefix=prefix,
        host_url=f"{scope['scheme']}://{headers.get('host', '')}",
        request_id=new_request_id(),
    )
