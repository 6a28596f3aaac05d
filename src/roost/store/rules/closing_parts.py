"""Parts of a database whose source closes after the last one."""

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

P = TypeVar("P")


def close_after(parts: Iterator[P], close: Callable[[], None]) -> Iterator[P]:
    """Return the same parts; call ``close`` after the last one, or when the iterator is dropped."""
    iterator = _until_closed(parts, close)
    next(iterator)  # Only a started generator runs its ``finally`` when it is dropped.
    return cast("Iterator[P]", iterator)


def _until_closed(parts: Iterator[P], close: Callable[[], None]) -> Iterator[P | None]:
    try:
        yield None
        yield from parts
    finally:
        close()
