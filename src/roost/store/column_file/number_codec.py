"""Columns of numbers as bytes: each in the smallest type that holds its values exactly."""

from typing import NamedTuple, TypeAlias

import numpy as np

from roost.engine.columns.types import Amounts, AnyArray, Scores

# Differences to the smallest value, by their size.
_SIZES = ((2**8, "<u1"), (2**16, "<u2"), (2**32, "<u4"))
_INTEGERS = frozenset({"<u1", "<u2", "<u4", "<i8"})
_REALS = frozenset({"<f4", "<f8"})


class PackedNumbers(NamedTuple):
    """A column of numbers."""

    offset: int  # to add to each value; 0 for real numbers
    kind: str  # type of the values in numpy's notation, little-endian
    values: bytes | memoryview


# The form of ``PackedNumbers`` in msgpack.
Packed: TypeAlias = tuple[int, str, memoryview]


def pack_integers(column: Amounts) -> PackedNumbers:
    """Return whole numbers as bytes; int64, shape (rows,)."""
    if not len(column):
        return PackedNumbers(0, "<u1", b"")
    low, high = int(column.min()), int(column.max())
    for size, kind in _SIZES:
        if high - low < size:
            return PackedNumbers(low, kind, (column - low).astype(kind).tobytes())
    return PackedNumbers(0, "<i8", column.astype("<i8").tobytes())


def pack_reals(column: Scores) -> PackedNumbers:
    """Return real numbers as bytes; float64, shape (rows,)."""
    with np.errstate(over="ignore"):  # A value beyond the short type becomes infinite, so it is not equal.
        short = column.astype("<f4")
    is_exact = np.array_equal(short, column)
    return PackedNumbers(0, "<f4" if is_exact else "<f8", (short if is_exact else column.astype("<f8")).tobytes())


def unpack_integers(packed: Packed, rows: int) -> Amounts:
    """Return whole numbers.

    Args:
        rows: the expected number of values.

    Raises:
        ValueError: the bytes are not such a column.
    """
    column: Amounts = _values(packed, rows, _INTEGERS).astype(np.int64)
    column += packed[0]
    return column


def unpack_reals(packed: Packed, rows: int) -> Scores:
    """Return real numbers; see ``unpack_integers``."""
    column: Scores = _values(packed, rows, _REALS).astype(np.float64)
    return column


def _values(packed: Packed, rows: int, kinds: frozenset[str]) -> AnyArray:
    _, kind, values = packed
    if kind not in kinds or len(values) != rows * np.dtype(kind).itemsize:
        raise ValueError(f"a column of {rows} numbers has {len(values)} bytes of type {kind!r}")
    return np.frombuffer(values, dtype=kind)
