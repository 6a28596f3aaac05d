"""Rows of work in a PostgreSQL database: read beside the stores that write them, and deleted by them."""

import uuid
from functools import partial
from typing import Any

from roost.model.settings.roost_settings import Store as Settings
from roost.store.postgresql.arrays import Array
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import Link
from roost.store.rules.schema import ColumnType, Table
from roost.store.work_queries import Has, Question, find_expired, statement, tallying

_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"


class WorkRows:
    """A connection that reads, and sees what was committed before each question.

    Args:
        url: as libpq takes it.
        settings: how long is waited for the server.
    """

    def __init__(self, url: str, *, settings: Settings) -> None:
        self._link = Link(url, settings=settings, is_read_only=True)

    def now_s(self) -> float:
        """See ``Rows.now_s``. The clocks of several machines differ; the server has one."""
        return float(self._link.read(_NOW, ())[0][0])

    def find(self, question: Question) -> list[tuple[Any, ...]]:
        """See ``Rows.find``."""
        return self._link.read(*_build_query(question))

    def tally(self, table: Table) -> tuple[int, int]:
        """See ``Rows.tally``."""
        ((count, versions),) = self._link.read(tallying(table), ())
        return int(count), int(versions)

    def close(self) -> None:
        """See ``Rows.close``."""
        self._link.close()


def forget(connection: Connection, older_than_s: float, *, most: int) -> int:
    """Delete work that is over, in the running transaction; return how many rows."""

    def find(question: Question) -> list[tuple[Any, ...]]:
        return connection.execute(*_build_query(question), prepare=True, binary=True).fetchall()

    gone = find_expired(find, older_than_s, most=most)
    for table, keys in gone:
        column, kind = table.key[0], table.types_of(table.key)[0]
        text = f"DELETE FROM {table.name} WHERE {column} = ANY (%b)"  # noqa: S608  # our names
        connection.execute(text.encode(), (Array(kind, [key for (key,) in keys]),))
    return sum(len(keys) for _, keys in gone)


def _build_query(question: Question) -> tuple[str, list[object]]:
    values = [_value(has, _type_of(question.table, has)) for has in question.has]
    return statement(question, partial(_condition, question.table)), values


def _type_of(table: Table, has: Has) -> ColumnType:
    return table.types_of((has.column,))[0]


def _condition(table: Table, has: Has) -> str:
    kind = _type_of(table, has)
    return f"{has.column} = ANY (%b::{kind}[])" if has.sign == "in" else f"{has.column} {has.sign} %b::{kind}"


def _value(has: Has, kind: ColumnType) -> object:
    if has.sign == "in":
        return Array(kind, list(has.value))
    return uuid.UUID(bytes=has.value) if kind == "uuid" else has.value
