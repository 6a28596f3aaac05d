"""Liveness, readiness and metrics, for monitoring."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import Future

from roost.api.asgi import Scope
from roost.api.health.readiness import ReadReadiness
from roost.api.http import Receive, Send
from roost.errors import RoostError, Unavailable
from roost.observe import exposition, log
from roost.observe.families import Area
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving

Health = Callable[[], Awaitable[str | None]]
# Maximum wait of a probe, in seconds. After that the check continues, and the next probe gets its result.
_WAIT_S = 0.03
# Seconds without an answer after which the thread counts as dead.
_DEAD_S = 60.0
# Seconds of work after which a probe reports a busy server.
_BUSY_S = 0.1


class HealthCheck:
    """Checks that the serving thread answers; one check runs at a time.

    A failure of the database does not count, because a restart of the process would not help; see ``Readiness``.

    Args:
        serving: the thread.
        dead_s: seconds without an answer after which the thread counts as dead.
    """

    def __init__(self, serving: Serving, *, dead_s: float = _DEAD_S) -> None:
        self._serving = serving
        self._dead_s = dead_s
        self._pending: asyncio.Future[str] | None = None
        self._submitted_s = 0.0

    async def __call__(self) -> str | None:
        """Return the problem in one sentence; None: no known problem."""
        loop = asyncio.get_running_loop()
        if self._serving.is_stopped:
            return self._serving.problem or "the server is stopping"
        if self._pending is None:
            outcome: Future[str] = Future()
            try:
                self._serving.submit(_confirm, outcome)
            except Unavailable:  # The queue is full. The thread is alive unless its present group takes too long.
                busy_s = self._serving.busy_s
                return None if busy_s < self._dead_s else f"the serving thread has been busy for {busy_s:.0f} s"
            self._pending, self._submitted_s = asyncio.wrap_future(outcome), loop.time()
        pending = self._pending  # Several callers may wait for it; the first one to continue clears it.
        await asyncio.wait((pending,), timeout=_WAIT_S)
        if not pending.done():
            waited_s = loop.time() - self._submitted_s
            problem = f"the serving thread has not answered for {waited_s:.0f} s"
            return problem if waited_s >= self._dead_s else None
        if self._pending is pending:
            self._pending = None
        error = pending.exception()
        if error is None or isinstance(error, RoostError):
            return None
        log.fault("healthz", error)
        return "internal error; see the log"


def _confirm(_current: Current) -> str:
    return "ok"


class Probes:
    """``/healthz``, ``/readyz`` and ``/metrics`` as an ASGI application.

    Args:
        health: returns the problem in one sentence; None: no problem.
        readiness: returns the results of the checks of readiness.
        serving: the serving thread, to report how long it is busy; None: it is in another process.
        areas: areas of the metrics to show.
        others: further paths, for the list of paths in a 404.
        note: returns a sentence for a healthy server; empty: none.
    """

    def __init__(
        self,
        health: Health,
        serving: Serving | None = None,
        *,
        readiness: ReadReadiness,
        areas: Collection[Area] = exposition.ALL_AREAS,
        others: Sequence[str] = (),
        note: Callable[[], str] = lambda: "",
    ) -> None:
        self._health, self._serving, self._note = health, serving, note
        self._readiness, self._areas = readiness, areas
        *first, last = *others, "/healthz", "/readyz", "/metrics"
        self._not_found = f"the paths are {', '.join(first)} and {last}\n".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        content_type = "text/plain; charset=utf-8"
        if scope["method"] not in {"GET", "HEAD"}:
            status, body = 405, b"only GET is supported\n"
        elif scope["path"] == "/healthz":
            problem = await self._health()
            busy_s = 0.0 if self._serving is None else self._serving.busy_s
            text = f"ok, busy for {busy_s:.1f} s\n" if busy_s >= _BUSY_S else "ok\n"
            if note := self._note():
                text += f"{note}\n"
            status, body = (200, text.encode()) if problem is None else (503, f"{problem}\n".encode())
        elif scope["path"] == "/readyz":
            report = await self._readiness()
            status, body, content_type = 200 if report.is_ready else 503, report.body(), "application/json"
        elif scope["path"] == "/metrics":
            status, body, content_type = 200, exposition.text(self._areas), exposition.CONTENT_TYPE
        else:
            status, body = 404, self._not_found
        headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
