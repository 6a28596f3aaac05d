"""Rows of work in a SQLite file: read beside the store that writes them, and deleted by it."""

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

from roost.ports import Clock
from roost.store.rules.schema import Table
from roost.store.sqlite.file import open_reader, translate_errors
from roost.store.sqlite.rows import delete
from roost.store.work_queries import Has, Question, find_expired, statement, tallying


class WorkRows:
    """A connection that reads, and sees what was committed before each question.

    Args:
        path: the file.
        clock: tells the time: only one process serves a file.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._connection = open_reader(path)

    def now_s(self) -> float:
        """See ``Rows.now_s``."""
        return self._clock.now_s()

    def find(self, question: Question) -> list[tuple[Any, ...]]:
        """See ``Rows.find``."""
        with translate_errors(self._path):
            return find(self._connection, question)

    def tally(self, table: Table) -> tuple[int, int]:
        """See ``Rows.tally``."""
        with translate_errors(self._path):
            count, versions = self._connection.execute(tallying(table)).fetchone()
        return count, versions

    def close(self) -> None:
        """See ``Rows.close``."""
        self._connection.close()


def find(connection: sqlite3.Connection, question: Question) -> list[tuple[Any, ...]]:
    """Return the rows that a question wants."""
    values = [value for has in question.has for value in (has.value if has.sign == "in" else [has.value])]
    return connection.execute(statement(question, _condition), values).fetchall()


def forget(connection: sqlite3.Connection, older_than_s: float, *, most: int) -> int:
    """Delete work that is over, in a transaction of its own; return how many rows."""
    gone = find_expired(partial(find, connection), older_than_s, most=most)
    if gone:
        connection.execute("BEGIN IMMEDIATE")
        for table, keys in gone:
            connection.executemany(delete(table), keys)
        connection.execute("COMMIT")
    return sum(len(keys) for _, keys in gone)


def _condition(has: Has) -> str:
    return f"{has.column} IN ({', '.join('?' * len(has.value))})" if has.sign == "in" else f"{has.column} {has.sign} ?"
