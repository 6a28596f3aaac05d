"""Columns of values as PostgreSQL's binary arrays.

psycopg writes a list element by element, and derives the type from the values, so it would prepare one statement
several times. Here the type is fixed, and a column of integers is one ``struct.pack``.
"""

import struct
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

from psycopg import Connection
from psycopg.abc import Buffer, PyFormat
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

from roost.store.rules.footprint import Values
from roost.store.rules.schema import ColumnType

_NULL = struct.pack(">i", -1)


class Array:
    """One encoded column."""

    __slots__ = ("data", "element_oid", "oid")

    def __init__(self, kind: ColumnType, values: Sequence[Any]) -> None:
        self.oid, self.element_oid, encode = _KINDS[kind]
        has_null = None in values
        body = b"".join(map(_nullable(encode), values)) if has_null else encode(values)
        if values:
            self.data = struct.pack(">iiiii", 1, int(has_null), self.element_oid, len(values), 1) + body
        else:
            self.data = struct.pack(">iii", 0, 0, self.element_oid)


def columns_of(types: Sequence[ColumnType], rows: Sequence[Values]) -> list[Array]:
    """Convert rows to one array per column."""
    if not rows:
        return [Array(kind, ()) for kind in types]
    return [Array(kind, column) for kind, column in zip(types, zip(*rows, strict=True), strict=True)]


def unnest(types: Sequence[ColumnType]) -> str:
    """Return SQL that converts the arrays of ``columns_of`` back to rows."""
    return f"unnest({', '.join(f'%b::{kind}[]' for kind in types)})"


def adapt(connection: Connection[Any]) -> None:
    """Register the conversion of these arrays, and of uuids to 16 bytes, at a connection."""
    connection.adapters.register_dumper(Array, _ArrayDumper)
    connection.adapters.register_loader("uuid", _BytesLoader)


def _nullable(encode: Callable[[Sequence[Any]], bytes]) -> Callable[[Any], bytes]:
    return lambda value: _NULL if value is None else encode((value,))


def _bigints(values: Sequence[Any]) -> bytes:
    return struct.pack(">" + "iq" * len(values), *chain.from_iterable(zip(repeat(8), values)))


def _floats(values: Sequence[Any]) -> bytes:
    return struct.pack(">" + "id" * len(values), *chain.from_iterable(zip(repeat(8), values)))


def _prefix_sizes(values: Sequence[Any]) -> bytes:
    return b"".join(chain.from_iterable((struct.pack(">i", len(value)), value) for value in values))


def _texts(values: Sequence[Any]) -> bytes:
    return _prefix_sizes([value.encode() for value in values])


# Object ids of the array type and of its element type, equal in every PostgreSQL.
_KINDS: dict[ColumnType, tuple[int, int, Callable[[Sequence[Any]], bytes]]] = {
    "bigint": (1016, 20, _bigints),
    "float8": (1022, 701, _floats),
    "text": (1009, 25, _texts),
    "bytea": (1001, 17, _prefix_sizes),
    "uuid": (2951, 2950, _prefix_sizes),
}


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def get_key(self, obj: Array, format: PyFormat) -> tuple[type, Any]:  # noqa: A002  # psycopg's names
        return (Array, obj.oid)

    def upgrade(self, obj: Array, format: PyFormat) -> "_ArrayDumper":  # noqa: A002
        typed = _ArrayDumper(Array)
        typed.oid = obj.oid
        return typed

    def dump(self, obj: Array) -> Buffer:
        return obj.data


class _BytesLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)
