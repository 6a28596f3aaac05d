"""A dictionary-encoded column: distinct values, and one code per host."""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.types import Rows
from roost.model.host import HostFacts

_Value = TypeVar("_Value")
_encode = msgspec.msgpack.Encoder(order="sorted").encode


class InternedValues(NamedTuple, Generic[_Value]):
    """Few distinct values, and one code per host.

    Verdicts on ``values`` give verdicts on all hosts: ``verdicts[codes]``.
    """

    values: list[_Value]  # distinct; some may be unused by now
    codes: Rows  # shape (hosts,): positions in ``values``


class InternedColumn(Generic[_Value]):
    """Interned values of all hosts, updated host by host.

    Args:
        read: reads the value from a host's facts: anything that MessagePack can encode.
        facts: of all hosts, by row.
    """

    __slots__ = ("_codes", "_index", "_read", "_values")

    def __init__(self, read: Callable[[HostFacts], _Value], facts: Iterable[HostFacts]) -> None:
        self._read = read
        self._values: list[_Value] = []
        self._index: dict[bytes, int] = {}
        self._codes = Column(np.intp)
        for row, each in enumerate(facts):
            self.put(row, each)

    def put(self, row: int, facts: HostFacts) -> None:
        """Set the value of a host from its facts; new rows come in order."""
        value = self._read(facts)
        code = self._index.setdefault(_encode(value), len(self._values))
        if code == len(self._values):
            self._values.append(value)
        self._codes.grow(row + 1)
        self._codes.each[row] = code

    @property
    def is_stale(self) -> bool:
        """Whether most values are unused, so that a rebuild would pay."""
        return len(self._values) > 64 + 2 * len(self._codes)

    @property
    def view(self) -> InternedValues[_Value]:
        """The interned values of all hosts; read-only."""
        return InternedValues(self._values, self._codes.view)

    def fork(self) -> "InternedColumn[_Value]":
        """Return an independent copy."""
        copy = InternedColumn(self._read, ())
        copy._values, copy._index = list(self._values), dict(self._index)  # it is the same class
        copy._codes = self._codes.fork()
        return copy
