"""What was made last, for rules that are asked about one request several times in a row."""

from collections.abc import Callable
from typing import Generic, TypeVar

_Asked = TypeVar("_Asked")
_Made = TypeVar("_Made")


class Latest(Generic[_Asked, _Made]):
    """A function that remembers its latest answer, and what it was asked.

    Args:
        make: the function; whatever it is asked must not change afterwards.
    """

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[_Asked], _Made]) -> None:
        self._make = make
        self._known: tuple[_Asked, _Made] | None = None

    def __call__(self, asked: _Asked) -> _Made:
        """Return the answer."""
        known = self._known
        if known is None or known[0] is not asked:
            known = self._known = (asked, self._make(asked))
        return known[1]
