"""Rows of work in a PostgreSQL database, read beside the stores that write them."""

import uuid
from functools import partial
from typing import Any

from roost.store.postgresql_arrays import Array
from roost.store.postgresql_link import Link
from roost.store.schema import ColumnType, Table
from roost.store.work_reading import Has, Question, statement

_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"


class WorkRows:
    """A connection that reads, and sees what was committed before each question.

    Args:
        url: as libpq takes it.
    """

    def __init__(self, url: str) -> None:
        self._link = Link(url, is_read_only=True)

    def now_s(self) -> float:
        """See ``Rows.now_s``. The clocks of several machines differ; the server has one."""
        return float(self._link.read(_NOW, ())[0][0])

    def find(self, question: Question) -> list[tuple[Any, ...]]:
        """See ``Rows.find``."""
        values = [_value(has, _type_of(question.table, has)) for has in question.has]
        return self._link.read(statement(question, partial(_said, question.table)), values)

    def close(self) -> None:
        """See ``Rows.close``."""
        self._link.close()


def _type_of(table: Table, has: Has) -> ColumnType:
    return table.types_of((has.column,))[0]


def _said(table: Table, has: Has) -> str:
    kind = _type_of(table, has)
    return f"{has.column} = ANY (%b::{kind}[])" if has.sign == "in" else f"{has.column} {has.sign} %b::{kind}"


def _value(has: Has, kind: ColumnType) -> object:
    if has.sign == "in":
        return Array(kind, list(has.value))
    return uuid.UUID(bytes=has.value) if kind == "uuid" else has.value
