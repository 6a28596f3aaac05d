"""Database outages: brief logs, and a note about the last failed write."""

import time
from collections.abc import Callable

from roost.api.http import Request, Response
from roost.api.problems import DATABASE_ERRORS
from roost.observe import log, metrics
from roost.placement.current import Current
from roost.placement.job import Task
from roost.placement.write_plan import Act, Again, Plan

_LOG_EVERY_S = 60.0


class Outages:
    """Logs the start and the end of a database outage, and at most one line a minute in between.

    Reads may succeed while writes fail, as on a full disk: only a successful write ends such an outage.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun_s: float | None = None  # None: no outage
        self._logged_s = 0.0
        self._requests = 0  # failed requests since the last log line
        self._write_failed_s: float | None = None  # None: the last write succeeded

    def track(self, request: Request, task: Task[Response]) -> Task[Response]:
        """Return a task that marks its request if it writes."""

        # The annotation is quoted, because otherwise each request would evaluate it.
        def run(current: Current) -> "Response | Plan[Response] | Act[Response] | Again":
            result = task(current)
            is_plan = isinstance(result, Plan) and bool(result.writes or result.work or result.create)
            request.is_write = is_plan or isinstance(result, Act)
            return result

        return run

    def record_failure(self, request: Request, error: Exception) -> None:
        """Record a failed request, if the database caused the failure."""
        if not isinstance(error, DATABASE_ERRORS):
            return
        metrics.DATABASE_FAILURES.inc()
        now_s = self._clock()
        if request.is_write:
            self._write_failed_s = now_s
        self._requests += 1
        if self._begun_s is None or now_s - self._logged_s >= _LOG_EVERY_S:
            log.event("database_unusable", request_id=request.request_id, problem=str(error), requests=self._requests)
            self._logged_s, self._requests = now_s, 0
        if self._begun_s is None:
            self._begun_s = now_s

    def record_success(self, request: Request) -> None:
        """Record a successful request."""
        if self._begun_s is None:
            return
        if request.is_write:
            self._write_failed_s = None
        if self._write_failed_s is None:
            log.event("database_usable", seconds=round(self._clock() - self._begun_s, 3), requests=self._requests)
            self._begun_s, self._requests = None, 0

    def note(self) -> str:
        """Return a note about the last write if it failed, otherwise an empty text."""
        if self._write_failed_s is None:
            return ""
        return f"the last write failed {self._clock() - self._write_failed_s:.0f} s ago; see the log"
