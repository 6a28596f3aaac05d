"""Waiting for what other threads and processes bring about."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PAUSE_S = 0.02


def until(true: Callable[[], T], *, within_s: float = 90.0) -> T:
    """Wait until something is so, and give it."""
    end_s = time.monotonic() + within_s
    while not (found := true()):
        assert time.monotonic() < end_s, f"it is not so after {within_s:g} s"
        time.sleep(_PAUSE_S)
    return found
