"""A cache of one result, for rules that need it several times per request."""

from collections.abc import Callable
from typing import Generic, TypeVar

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
