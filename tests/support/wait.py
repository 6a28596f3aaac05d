"""Wait for a condition that other threads or processes bring about."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PAUSE_S = 0.02


def wait_until(true: Callable[[], T], *, within_s: float = 90.0) -> T:
    """Wait until a condition holds, and return its value."""
    end_s = time.monotonic() + within_s
    while not (value := true()):
        assert time.monotonic() < end_s, f"the condition does not hold after {within_s:g} s"
        time.sleep(_PAUSE_S)
    return value
