"""Rows of work in a SQLite file: queries on a connection of their own, and the deletion of expired rows."""

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

from roost.ports import Clock
from roost.store.old_changes import find_old_changes
from roost.store.rules.schema import Table
from roost.store.sqlite.file import open_reader, translate_errors
from roost.store.sqlite.rows import delete
from roost.store.work_queries import Condition, RowQuery, find_expired, statement, tally_statement


class WorkRows:
    """A connection for queries; each query sees all earlier commits.

    Args:
        path: the file.
        clock: the source of time, since only one process serves a file.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._connection = open_reader(path)

    def now_s(self) -> float:
        """See ``Rows.now_s``."""
        return self._clock.now_s()

    def find(self, query: RowQuery) -> list[tuple[Any, ...]]:
        """See ``Rows.find``."""
        with translate_errors(self._path):
            return find(self._connection, query)

    def tally(self, table: Table) -> tuple[int, int]:
        """See ``Rows.tally``."""
        with translate_errors(self._path):
            count, versions = self._connection.execute(tally_statement(table)).fetchone()
        return count, versions

    def close(self) -> None:
        """See ``Rows.close``."""
        self._connection.close()


def find(connection: sqlite3.Connection, query: RowQuery) -> list[tuple[Any, ...]]:
    """Return the rows that match a query."""
    values = [
        value
        for condition in query.conditions
        for value in (condition.value if condition.operator == "in" else [condition.value])
    ]
    return connection.execute(statement(query, _condition), values).fetchall()


def delete_expired(
    connection: sqlite3.Connection, older_than_s: float, *, changes_older_than_s: float, excess: int, limit: int
) -> int:
    """Delete expired work and old changes in its own transaction; return the number of rows."""
    rows = partial(find, connection)
    expired = find_expired(rows, older_than_s, limit=limit)
    expired += find_old_changes(rows, changes_older_than_s, excess=excess, limit=limit)
    if expired:
        connection.execute("BEGIN IMMEDIATE")
        for table, keys in expired:
            connection.executemany(delete(table), keys)
        connection.execute("COMMIT")
    return sum(len(keys) for _, keys in expired)


def _condition(condition: Condition) -> str:
    if condition.operator == "in":
        return f"{condition.column} IN ({', '.join('?' * len(condition.value))})"
    return f"{condition.column} {condition.operator} ?"
