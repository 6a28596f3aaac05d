"""Reads of many rows as of one moment, on a connection of their own."""

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

from roost.store.mariadb.connection import Connection, translate_errors
from roost.store.mariadb.link import close_connection, connect
from roost.store.mariadb.script import row_text
from roost.store.rules.closing_parts import close_after
from roost.store.rules.schema import ALLOCATION, PROVIDER_AGGREGATE, PROVIDER_TRAIT, Table

P = TypeVar("P")
_PAGE = 5000
# Where the key of a table selects several rows, the key of one row.
_ROW_KEYS = {
    ALLOCATION.name: ("consumer_id", "inventory_id"),
    PROVIDER_TRAIT.name: ("provider_id", "trait_id"),
    PROVIDER_AGGREGATE.name: ("provider_id", "aggregate_id"),
}


def connect_reader(url: str, *, deadline_s: float) -> Connection:
    """Connect for reads as of this moment; on a node of a cluster, after all acknowledged commits."""
    connection = connect(url, deadline_s=deadline_s)
    try:
        with translate_errors():
            if connection.server.is_cluster:
                connection.execute("SET SESSION wsrep_sync_wait = 1")
            connection.run(
                [
                    "SET SESSION tx_isolation = 'REPEATABLE-READ', idle_transaction_timeout = 0",
                    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
                ]
            )
    except BaseException:
        connection.drop()
        raise
    return connection


def scan(connection: Connection, table: Table, *, at_once: int = _PAGE) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table in the order of its key, page by page: several scans can alternate.

    Args:
        at_once: rows of a page.
    """
    key = _ROW_KEYS.get(table.name, table.key)
    places = [table.columns.index(column) for column in key]
    condition = ""
    while True:
        text = (
            f"SELECT {', '.join(table.columns)} FROM {table.name} FORCE INDEX (PRIMARY) {condition} "  # noqa: S608
            f"ORDER BY {', '.join(key)} LIMIT {at_once}"
        )
        rows = connection.execute(text).rows
        yield from rows
        if len(rows) < at_once:
            return
        condition = _after(key, [rows[-1][place] for place in places])


def _after(key: tuple[str, ...], values: list[Any]) -> str:
    """Return a condition for the rows after a row; the server reads them as one range of the index."""
    if len(key) == 1:
        return f"WHERE {key[0]} > {row_text(values)}"
    (first, second), (low, least) = key, map(_one, values)
    return f"WHERE {first} >= {low} AND ({first} > {low} OR {second} > {least})"


def _one(value: Any) -> str:
    return row_text([value])


def pages(connection: Connection, text: str, *, at_once: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query by the number in their first column.

    Args:
        text: has ``{after}`` for the number before a page, and rises by its first column.
        at_once: rows of a page.
    """
    after = -1
    while True:
        rows = connection.execute(f"{text.format(after=after)} LIMIT {at_once}").rows
        yield from rows
        if len(rows) < at_once:
            return
        after = rows[-1][0]


def closing_after(connection: Connection, parts: Iterator[P]) -> Iterator[P]:
    """Return the same parts; close the connection after the last one, or when the iterator is dropped."""
    return close_after(_with_our_errors(parts), partial(close_connection, connection))


def _with_our_errors(parts: Iterator[P]) -> Iterator[P]:
    with translate_errors():
        yield from parts
