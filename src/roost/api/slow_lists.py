"""Lists that took long in the serving thread; for a minute, the reader process answers them."""

import re
import time
from typing import TypeVar

from roost.api.http import Request, TooSlow
from roost.placement.current import Current
from roost.placement.job import Task
from roost.placement.write_plan import Act, Again, Plan

# A list is slow if it used more processor time than this, in seconds, or exceeded its budget.
_SLOW_S = 0.005
# Seconds after which the thread tries it again: the fleet may have become smaller.
_KEEP_S = 60.0
_LISTS_MAX = 1024
_CURSOR = re.compile(r"(?:^|&)cursor=[^&]*")

Answer = TypeVar("Answer")


class SlowLists:
    """The slow lists of one API, by route and query string; all pages of a list count as one."""

    def __init__(self) -> None:
        self._until_s: dict[tuple[str, str], float] = {}

    def is_slow(self, request: Request) -> bool:
        """Return whether this list was slow in the last minute."""
        return self._until_s.get(_key_of(request), 0.0) > time.monotonic()

    def measure(self, request: Request, task: Task[Answer]) -> Task[Answer]:
        """Return the task of a list with a measurement of its processor time."""

        # The annotation is quoted, because otherwise each request would evaluate it.
        def run(current: Current) -> "Answer | Plan[Answer] | Act[Answer] | Again":
            begun_s, is_slow = time.thread_time(), False
            try:
                return task(current)
            except TooSlow:
                is_slow = True  # On a busy machine, it may have used little processor time.
                raise
            finally:
                if is_slow or time.thread_time() - begun_s > _SLOW_S:
                    self._remember(request)

        return run

    def _remember(self, request: Request) -> None:
        if len(self._until_s) >= _LISTS_MAX:
            self._until_s.clear()
        self._until_s[_key_of(request)] = time.monotonic() + _KEEP_S


def _key_of(request: Request) -> tuple[str, str]:
    return request.route, _CURSOR.sub("", request.query_string)
