"""Reads of many rows as of one moment, on a connection of their own."""

from collections.abc import Iterator
from typing import Any, TypeVar, cast

import psycopg

from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import connect, translate_errors

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
    iterator = _until_closed(connection, parts)
    next(iterator)  # Only a started generator runs its ``finally`` when it is dropped.
    return cast("Iterator[P]", iterator)


def _until_closed(connection: Connection, parts: Iterator[P]) -> Iterator[P | None]:
    try:
        yield None
        with translate_errors():
            yield from parts
    finally:
        connection.close()
