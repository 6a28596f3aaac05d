"""Rows of work in a PostgreSQL database: queries on a connection of their own, and the deletion of expired rows."""

import uuid
from functools import partial
from typing import Any

from roost.model.settings.roost_settings import Store as Settings
from roost.store.old_changes import find_old_changes
from roost.store.postgresql.arrays import Array
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import Link
from roost.store.rules.schema import ColumnType, Table
from roost.store.servers.lost_hosts import Losses
from roost.store.work_queries import Condition, RowQuery, find_expired, statement, tally_statement

_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"


class WorkRows:
    """A connection for queries; each query sees all earlier commits.

    Args:
        url: a URL of libpq.
        settings: deadlines and waits.
        losses: of the connection of the store.
    """

    def __init__(self, url: str, *, settings: Settings, losses: Losses) -> None:
        self._link = Link(url, settings=settings, is_read_only=True, role="work", losses=losses)

    def now_s(self) -> float:
        """See ``Rows.now_s``. The clocks of machines differ, so the clock of the server counts."""
        return float(self._link.read(_NOW, ())[0][0])

    def find(self, query: RowQuery) -> list[tuple[Any, ...]]:
        """See ``Rows.find``."""
        return self._link.read(*_build_query(query))

    def tally(self, table: Table) -> tuple[int, int]:
        """See ``Rows.tally``."""
        ((count, versions),) = self._link.read(tally_statement(table), ())
        return int(count), int(versions)

    def close(self) -> None:
        """See ``Rows.close``."""
        self._link.close()


def delete_expired(
    connection: Connection, older_than_s: float, *, changes_older_than_s: float, excess: int, limit: int
) -> int:
    """Delete expired work and old changes in the running transaction; return the number of rows."""

    def find(query: RowQuery) -> list[tuple[Any, ...]]:
        return connection.execute(*_build_query(query), prepare=True, binary=True).fetchall()

    expired = find_expired(find, older_than_s, limit=limit)
    expired += find_old_changes(find, changes_older_than_s, excess=excess, limit=limit)
    for table, keys in expired:
        column, kind = table.key[0], table.types_of(table.key)[0]
        text = f"DELETE FROM {table.name} WHERE {column} = ANY (%b)"  # noqa: S608  # our names
        connection.execute(text.encode(), (Array(kind, [key for (key,) in keys]),))
    return sum(len(keys) for _, keys in expired)


def _build_query(query: RowQuery) -> tuple[str, list[object]]:
    values = [_value(condition, _type_of(query.table, condition)) for condition in query.conditions]
    return statement(query, partial(_condition, query.table)), values


def _type_of(table: Table, condition: Condition) -> ColumnType:
    return table.types_of((condition.column,))[0]


def _condition(table: Table, condition: Condition) -> str:
    kind = _type_of(table, condition)
    if condition.operator == "in":
        return f"{condition.column} = ANY (%b::{kind}[])"
    return f"{condition.column} {condition.operator} %b::{kind}"


def _value(condition: Condition, kind: ColumnType) -> object:
    if condition.operator == "in":
        return Array(kind, list(condition.value))
    return uuid.UUID(bytes=condition.value) if kind == "uuid" else condition.value
