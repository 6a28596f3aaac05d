"""The trace of a request: its span, with the waits for the deciding thread and the reader process."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from roost.api.http import Request, Response
from roost.observe.traces import Part, Tracer
from roost.placement.current import Current
from roost.placement.job import Task
from roost.placement.write_plan import Act, Again, Plan

Answer = TypeVar("Answer")


class TaskTimer:
    """Measures the wait of a task in the queue, and the work of the deciding thread until the end of its commit."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._submitted_s = time.perf_counter()
        self._begun_s: float | None = None

    def measure(self, task: Task[Answer]) -> Task[Answer]:
        """Return the task with a note of its start; it may run several times."""

        def run(current: Current) -> "Answer | Plan[Answer] | Act[Answer] | Again":
            if self._begun_s is None:
                self._begun_s = time.perf_counter()
            return task(current)

        return run

    def end(self) -> None:
        """Note the parts of the request."""
        end_s = time.perf_counter()
        begun_s = end_s if self._begun_s is None else self._begun_s
        self._request.parts += (Part("queue", self._submitted_s, begun_s),)
        if self._begun_s is not None:
            self._request.parts += (Part("deciding thread", begun_s, end_s),)


@contextmanager
def time_reader(request: Request) -> Iterator[None]:
    """Measure the work of the reader process within the block."""
    start_s = time.perf_counter()
    try:
        yield
    finally:
        request.parts += (Part("reader process", start_s, time.perf_counter()),)


def trace_request(tracer: Tracer, request: Request, response: Response, *, route: str, start_s: float) -> None:
    """Record the span of a request that ends now.

    Source:
        OpenTelemetry's semantic conventions for HTTP servers.
    """
    identity = request.identity
    attributes: dict[str, Any] = {
        "http.request.method": request.method,
        "http.response.status_code": response.status,
        "http.response.body.size": len(response.body),
        "url.path": request.prefix + request.path,
        "roost.request_id": request.request_id,
    }
    optional = {
        "http.route": route,
        "client.address": request.client,
        "user_agent.original": request.headers.get("user-agent", ""),
        "enduser.id": "" if identity is None else identity.user_id,
        "roost.problem": request.problem,
    }
    tracer.record(
        f"{request.method} {route}" if route else request.method,
        headers=request.headers,
        parts=request.parts,
        start_s=start_s,
        attributes=attributes | {name: value for name, value in optional.items() if value},
    )
