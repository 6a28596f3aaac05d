"""The statements of the SQLite store that write a batch."""

import sqlite3
from collections.abc import Iterable

from roost.model.writes import CLASS_BITS
from roost.store.rules.batch import Batch
from roost.store.rules.codec import CODECS, fill, rewrites
from roost.store.rules.footprint import Touched, Values
from roost.store.rules.row_cache import Shelves
from roost.store.rules.schema import (
    ALLOCATION,
    CONSUMER,
    DECISION,
    DOCUMENT,
    INSTANCE,
    INVENTORY,
    PLACE,
    PROVIDER,
    PROVIDER_TRAIT,
    Table,
    select,
)

# The peak is checked rather than the sum: a batch that gives back what it took must have had room for it.
_TAKE = """
UPDATE inventory SET used = used + ?
WHERE id = ? AND used + ? <= (total - reserved) * allocation_ratio
  AND ? >= min_unit AND ? <= max_unit AND ? % step_size = 0"""
_SIT = """
INSERT INTO place (group_id, scope, holder, members) VALUES (?, ?, ?, ?)
ON CONFLICT (group_id, scope) DO UPDATE SET holder = excluded.holder, members = members + excluded.members
WHERE (members = 0 OR holder = excluded.holder) AND members + excluded.members <= ?"""
_RISE = """
UPDATE place SET members = members + ?
WHERE group_id = ? AND scope = ? AND holder = ? AND members + ? >= 0"""
_FREE = "DELETE FROM allocation WHERE consumer_id = ? AND inventory_id = ? AND amount = ?"


def insert(table: Table) -> str:
    """Return a statement that inserts a row."""
    marks = ", ".join("?" * len(table.columns))
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})"  # noqa: S608


def _where(columns: tuple[str, ...]) -> str:
    return "WHERE " + " AND ".join(f"{column} = ?" for column in columns)


def delete(table: Table) -> str:
    """Return a statement that deletes what a key names."""
    return f"DELETE FROM {table.name} {_where(table.key)}"  # noqa: S608


_INSERT = {table.name: insert(table) for table in (CONSUMER, ALLOCATION, INSTANCE, DOCUMENT, DECISION)}
_DELETE_CONSUMER = delete(CONSUMER)
_DELETE_INSTANCE = delete(INSTANCE)
_DELETE_HOLDING = delete(ALLOCATION)


_OFFERED = select(INVENTORY, f"WHERE id % {1 << CLASS_BITS} = ?")
_WORN = select(
    PROVIDER_TRAIT, "WHERE provider_id IN (SELECT provider_id FROM provider_trait WHERE trait_id = ?) ORDER BY 1"
)


def write_batch(connection: sqlite3.Connection, batch: Batch) -> bool:
    """Write a batch in the running transaction, if every guard of it passes.

    Returns:
        False if one does not; then some rows may have been written, and the transaction must be rolled back.
    """
    many = connection.executemany
    try:
        if batch.stocks:
            rows = [
                (added, number, peak, least, most, divisor)
                for number, (added, peak, least, most, divisor) in sorted(batch.stocks.items())
            ]
            if many(_TAKE, rows).rowcount != len(rows):
                return False
        if batch.places and not _write_places(connection, batch):
            return False
        if batch.released and not _write_releases(connection, batch):
            return False
        if not _write_consumers(connection, batch):
            return False
        many(_INSERT["allocation"], batch.allocations)
        if batch.instances:
            many(_INSERT["instance"], batch.instances)
        if batch.documents:
            many(_INSERT["document"], batch.documents)
        if batch.decisions:
            many(_INSERT["decision"], batch.decisions)
    except sqlite3.IntegrityError:
        return False
    return True


def _write_places(connection: sqlite3.Connection, batch: Batch) -> bool:
    rows = [(*key, *amounts) for key, amounts in batch.places.items()]
    taken = [row for row in rows if row[3] > 0]
    given = [(row[3], *row[:4]) for row in rows if row[3] < 0]
    if taken and connection.executemany(_SIT, taken).rowcount != len(taken):
        return False
    return not given or connection.executemany(_RISE, given).rowcount == len(given)


def _write_releases(connection: sqlite3.Connection, batch: Batch) -> bool:
    many, own = connection.executemany, [(number,) for number in batch.released]
    return (
        many(_FREE, batch.frees).rowcount == len(batch.frees)
        and many(_DELETE_HOLDING, own).rowcount == 0  # They held nothing else.
        and many(_DELETE_INSTANCE, own).rowcount >= 0
    )


def _write_consumers(connection: sqlite3.Connection, batch: Batch) -> bool:
    """Write who goes and who comes, in order: a uuid is free for the next one only once its consumer has gone."""
    many, gone, come = connection.executemany, [(number,) for number in batch.released], list(batch.consumers.values())
    released = inserted = 0
    for until_released, until_inserted in (*batch.turns, (len(gone), len(come))):
        own = gone[released:until_released]
        if own and many(_DELETE_CONSUMER, own).rowcount != len(own):
            return False
        if until_inserted > inserted:
            many(_INSERT["consumer"], come[inserted:until_inserted])
        released, inserted = until_released, until_inserted
    return True


def read_touched(connection: sqlite3.Connection, touched: Touched) -> Shelves:
    """Read the rows that a verdict looks at, in the running transaction."""
    shelves = Shelves()
    for (name, columns), values in touched.lookups.items():
        _read(connection, shelves, CODECS[name].table, columns=columns, values=values)
    _read(connection, shelves, INVENTORY, columns=("id",), values=((number,) for number in touched.stock_ids))
    _read(connection, shelves, PLACE, columns=PLACE.key, values=touched.place_keys)
    statement = select(INVENTORY, "WHERE id BETWEEN ? AND ?")
    for number in touched.whole_providers:
        bounds = (number << CLASS_BITS, (number + 1 << CLASS_BITS) - 1)
        fill(shelves, "inventory", connection.execute(statement, bounds).fetchall())
    for number in touched.offered:
        fill(shelves, "inventory", connection.execute(_OFFERED, (number,)).fetchall())
    for number in touched.worn:
        fill(shelves, "provider_trait", connection.execute(_WORN, (number,)).fetchall())
    roots = {provider.root_id for number in touched.trees if (provider := shelves.providers.get(number))}
    _read(connection, shelves, PROVIDER, columns=("root_id",), values=((number,) for number in roots))
    return shelves


def _read(
    connection: sqlite3.Connection,
    shelves: Shelves,
    table: Table,
    *,
    columns: tuple[str, ...],
    values: Iterable[Values],
) -> None:
    statement = select(table, _where(columns))
    for value in values:
        rows = connection.execute(statement, value).fetchall()
        if rows:
            fill(shelves, table.name, rows)


def write_changed(connection: sqlite3.Connection, shelves: Shelves) -> None:
    """Write what accepted items changed, in the running transaction."""
    for rewrite in rewrites(shelves):
        table = rewrite.table
        if rewrite.gone:
            connection.executemany(delete(table), rewrite.gone)
        if rewrite.updated:
            connection.executemany(insert(table).replace("INSERT", "INSERT OR REPLACE", 1), rewrite.updated)
        if rewrite.fresh:
            connection.executemany(insert(table), rewrite.fresh)
