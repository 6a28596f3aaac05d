"""Caches of results, for rules that need them several times per request."""

from collections.abc import Callable
from typing import Generic, TypeVar

# Upper bound on the results of ``Recent``: as many as compiled shapes of requests.
_RECENT_MAX = 256

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


class Latest(Generic[_Argument, _Result]):
    """A function that caches its latest result, by the identity of its argument.

    Args:
        make: the function; its argument must not change afterwards.
    """

    __slots__ = ("_latest", "_make")

    def __init__(self, make: Callable[[_Argument], _Result]) -> None:
        self._make = make
        self._latest: tuple[_Argument, _Result] | None = None

    def __call__(self, argument: _Argument) -> _Result:
        """Return the result for an argument."""
        latest = self._latest
        if latest is None or latest[0] is not argument:
            latest = self._latest = (argument, self._make(argument))
        return latest[1]


class Recent(Generic[_Argument, _Result]):
    """A function that caches results, by the identity of its argument.

    Args:
        make: the function; its arguments must not change afterwards.
    """

    __slots__ = ("_make", "_recent")

    def __init__(self, make: Callable[[_Argument], _Result]) -> None:
        self._make = make
        self._recent: dict[int, tuple[_Argument, _Result]] = {}  # an argument is kept, so that its id stays its own

    def __call__(self, argument: _Argument) -> _Result:
        """Return the result for an argument."""
        recent = self._recent.get(id(argument))
        if recent is None:
            if len(self._recent) >= _RECENT_MAX:
                self._recent.clear()
            recent = self._recent[id(argument)] = (argument, self._make(argument))
        return recent[1]
