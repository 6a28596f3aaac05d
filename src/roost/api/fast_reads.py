"""Fast reads: the event loop answers them itself, because waking the serving thread would take longer."""

import math
import time
from typing import TypeVar

from roost.api.http import Request, TooSlow
from roost.errors import RoostError
from roost.observe import metrics
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.job import Task
from roost.placement.write_plan import Act, Again, Plan

# The loop answers a read if its last run took at most this number of seconds. All other requests wait meanwhile.
_QUICK_S = 0.002
# Budget on the loop, in seconds; a slower read restarts in the serving thread.
_INLINE_MAX_S = 0.02
_DURATIONS_MAX = 4096

Answer = TypeVar("Answer")


class FastReads:
    """The last duration of each read."""

    def __init__(self) -> None:
        self._durations_s: dict[tuple[str, str], float] = {}  # by route and query string

    def measure(self, request: Request, task: Task[Answer]) -> Task[Answer]:
        """Return the task of a read with a measurement of its duration."""
        key = request.route, request.query_string

        # The annotation is quoted, because otherwise each request would evaluate it.
        def run(current: Current) -> "Answer | Plan[Answer] | Act[Answer] | Again":
            begun_s = time.perf_counter()
            try:
                return task(current)
            finally:
                if len(self._durations_s) >= _DURATIONS_MAX:
                    self._durations_s.clear()
                self._durations_s[key] = time.perf_counter() - begun_s

        return run

    def answer_at_once(self, request: Request, task: Task[Answer], serving: Serving) -> Answer | None:
        """Answer a read on the loop; None: it is not fast, or the thread is busy."""
        if self._durations_s.get((request.route, request.query_string), math.inf) > _QUICK_S:
            return None
        request.is_at_once = True
        try:
            return serving.answer_at_once(request.with_budget(_INLINE_MAX_S, task))
        except TooSlow:
            return None
        except RoostError:
            raise
        except Exception:
            metrics.FAULTS.inc()
            raise
        finally:
            request.is_at_once = False
