"""What hosts say of themselves, told apart: each thing that is said once, and which of them each host says."""

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
    """The things that some hosts say, of which there are few, and which of them each host says.

    Whoever has judged ``values`` has judged all hosts: ``verdicts[codes]``.
    """

    values: list[_Value]  # no two alike; there may be some that no host says any more
    codes: Rows  # shape (hosts,): where in ``values``


class InternedColumn(Generic[_Value]):
    """The same of all hosts, kept right host by host.

    Args:
        tell: gives what a host says: anything that can be written as MessagePack.
        facts: of all hosts, by row.
    """

    __slots__ = ("_codes", "_index", "_read", "_values")

    def __init__(self, tell: Callable[[HostFacts], _Value], facts: Iterable[HostFacts]) -> None:
        self._read = tell
        self._values: list[_Value] = []
        self._index: dict[bytes, int] = {}
        self._codes = Column(np.intp)
        for row, each in enumerate(facts):
            self.put(row, each)

    def put(self, row: int, facts: HostFacts) -> None:
        """Say what a host says now; rows come in their order when they are new."""
        value = self._read(facts)
        code = self._index.setdefault(_encode(value), len(self._values))
        if code == len(self._values):
            self._values.append(value)
        self._codes.grow(row + 1)
        self._codes.each[row] = code

    @property
    def is_stale(self) -> bool:
        """Say whether most values are of the past, so that making it anew would pay."""
        return len(self._values) > 64 + 2 * len(self._codes)

    @property
    def interned(self) -> InternedValues[_Value]:
        """What all hosts say; read-only."""
        return InternedValues(self._values, self._codes.view)

    def fork(self) -> "InternedColumn[_Value]":
        """Return an independent copy."""
        copy = InternedColumn(self._read, ())
        copy._values, copy._index = list(self._values), dict(self._index)  # it is the same class
        copy._codes = self._codes.fork()
        return copy
