"""The rule of a kind of write."""

from collections.abc import Callable
from typing import Any, NamedTuple

from roost.model.writes import Refusal
from roost.store.rules.footprint import Touched
from roost.store.rules.row_cache import Shelves


class WriteRule(NamedTuple):
    """The rule of a kind of write, for every store.

    Args:
        touch: adds the rows that ``judge`` needs.
        judge: applies the write to the rows, or returns why it is refused.
    """

    touch: Callable[[Touched, Any], None]
    judge: Callable[[Shelves, Any], Refusal | None]
