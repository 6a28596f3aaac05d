"""The rule of a kind of write."""

from collections.abc import Callable
from typing import Any, NamedTuple

from roost.model.writes import Refusal
from roost.store.rules.footprint import Footprint
from roost.store.rules.row_cache import RowCache


class WriteRule(NamedTuple):
    """The rule of a kind of write, for every store.

    Args:
        collect: adds the keys of the rows that ``judge`` needs.
        judge: applies the write to the rows, or returns a refusal.
    """

    collect: Callable[[Footprint, Any], None]
    judge: Callable[[RowCache, Any], Refusal | None]
