"""Reads of many rows as of one moment, on a connection of their own."""

from collections.abc import Iterator
from typing import Any, TypeVar

import psycopg

from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import connect, translate_errors
from roost.store.rules.closing_parts import close_after

P = TypeVar("P")


def connect_reader(url: str, *, deadline_s: float) -> Connection:
    """Connect for reads as of the moment of the first statement."""
    connection = connect(url, deadline_s=deadline_s)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    connection.autocommit = False
    return connection


def bodies(connection: Connection, text: str, values: Any, *, at_once: int) -> Iterator[bytes]:
    """Yield the first column of the rows of a statement.

    Args:
        at_once: rows for each round trip.
    """
    with connection.cursor("bodies", binary=True) as cursor:
        cursor.itersize = at_once
        for (body,) in cursor.execute(text.encode(), values):
            yield body


def closing_after(connection: Connection, parts: Iterator[P]) -> Iterator[P]:
    """Return the same parts; close the connection after the last one, or when the iterator is dropped."""
    return close_after(_with_our_errors(parts), connection.close)


def _with_our_errors(parts: Iterator[P]) -> Iterator[P]:
    with translate_errors():
        yield from parts
