"""The statements of the SQLite store that write a batch."""

import sqlite3
from collections.abc import Iterable

from roost.model.writes import CLASS_BITS
from roost.store.rules.batch import Batch
from roost.store.rules.codec import CODECS, fill, table_changes
from roost.store.rules.footprint import Footprint, Values
from roost.store.rules.row_cache import RowCache
from roost.store.rules.schema import (
    ALLOCATION,
    CHANGE_RECORD,
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

# The guard checks the peak rather than the sum: if a release follows a claim, the claim must fit before the release.
_CLAIM_INVENTORY = """
UPDATE inventory SET used = used + ?
WHERE id = ? AND used + ? <= (total - reserved) * allocation_ratio
  AND ? >= min_unit AND ? <= max_unit AND ? % step_size = 0"""
_CLAIM_PLACE = """
INSERT INTO place (group_id, scope, holder, members) VALUES (?, ?, ?, ?)
ON CONFLICT (group_id, scope) DO UPDATE SET holder = excluded.holder, members = members + excluded.members
WHERE (members = 0 OR holder = excluded.holder) AND members + excluded.members <= ?"""
_RELEASE_PLACE = """
UPDATE place SET members = members + ?
WHERE group_id = ? AND scope = ? AND holder = ? AND members + ? >= 0"""
_FIND_GROUP = "SELECT 1 FROM server_group WHERE id = ?"
_RELEASE_ALLOCATION = "DELETE FROM allocation WHERE consumer_id = ? AND inventory_id = ? AND amount = ?"


def insert(table: Table) -> str:
    """Return a statement that inserts a row."""
    marks = ", ".join("?" * len(table.columns))
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})"  # noqa: S608


def _where(columns: tuple[str, ...]) -> str:
    return "WHERE " + " AND ".join(f"{column} = ?" for column in columns)


def delete(table: Table) -> str:
    """Return a statement that deletes the rows of a key."""
    return f"DELETE FROM {table.name} {_where(table.key)}"  # noqa: S608


_INSERT = {table.name: insert(table) for table in (CONSUMER, ALLOCATION, INSTANCE, DOCUMENT, DECISION, CHANGE_RECORD)}
_DELETE_CONSUMER = delete(CONSUMER)
_DELETE_INSTANCE = delete(INSTANCE)
_DELETE_ALLOCATIONS = delete(ALLOCATION)
_INVENTORIES_OF_CLASS = select(INVENTORY, f"WHERE id % {1 << CLASS_BITS} = ?")
# The second condition selects the partial index.
_INSTANCES_OF_GROUP = select(INSTANCE, "WHERE group_id = ? AND group_id <> 0")
_TRAITS_OF_PROVIDERS_WITH_TRAIT = select(
    PROVIDER_TRAIT, "WHERE provider_id IN (SELECT provider_id FROM provider_trait WHERE trait_id = ?) ORDER BY 1"
)


def write_batch(connection: sqlite3.Connection, batch: Batch) -> bool:
    """Write a batch in the running transaction, if all its guards pass.

    Returns:
        False if a guard does not pass. Some rows may have been written, so roll the transaction back.
    """
    many = connection.executemany
    try:
        if batch.stocks:
            rows = [
                (added, number, peak, minimum, maximum, divisor)
                for number, (added, peak, minimum, maximum, divisor) in sorted(batch.stocks.items())
            ]
            if many(_CLAIM_INVENTORY, rows).rowcount != len(rows):
                return False
        if not all(connection.execute(_FIND_GROUP, (number,)).fetchone() for number in batch.groups):
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
        if batch.trail:
            many(_INSERT["change_record"], batch.trail)
    except sqlite3.IntegrityError:
        return False
    return True


def _write_places(connection: sqlite3.Connection, batch: Batch) -> bool:
    rows = [(*key, *amounts) for key, amounts in batch.places.items()]
    claims = [row for row in rows if row[3] > 0]
    releases = [(row[3], *row[:4]) for row in rows if row[3] < 0]
    if claims and connection.executemany(_CLAIM_PLACE, claims).rowcount != len(claims):
        return False
    return not releases or connection.executemany(_RELEASE_PLACE, releases).rowcount == len(releases)


def _write_releases(connection: sqlite3.Connection, batch: Batch) -> bool:
    many, keys = connection.executemany, [(number,) for number in batch.released]
    return (
        many(_RELEASE_ALLOCATION, batch.frees).rowcount == len(batch.frees)
        and many(_DELETE_ALLOCATIONS, keys).rowcount == 0  # The consumers had no other allocations.
        and many(_DELETE_INSTANCE, keys).rowcount >= 0
    )


def _write_consumers(connection: sqlite3.Connection, batch: Batch) -> bool:
    """Delete and insert consumers, phase by phase: a released uuid can be claimed again."""
    many = connection.executemany
    released, claimed = [(number,) for number in batch.released], list(batch.consumers.values())
    deleted = inserted = 0
    for release_end, claim_end in (*batch.phases, (len(released), len(claimed))):
        keys = released[deleted:release_end]
        if keys and many(_DELETE_CONSUMER, keys).rowcount != len(keys):
            return False
        if claim_end > inserted:
            many(_INSERT["consumer"], claimed[inserted:claim_end])
        deleted, inserted = release_end, claim_end
    return True


def read_footprint(connection: sqlite3.Connection, footprint: Footprint) -> RowCache:
    """Read the rows of a footprint, in the running transaction."""
    cache = RowCache()
    for (name, columns), values in footprint.lookups.items():
        _read(connection, cache, CODECS[name].table, columns=columns, values=values)
    _read(connection, cache, INVENTORY, columns=("id",), values=((number,) for number in footprint.stock_ids))
    _read(connection, cache, PLACE, columns=PLACE.key, values=footprint.place_keys)
    statement = select(INVENTORY, "WHERE id BETWEEN ? AND ?")
    for number in footprint.whole_providers:
        bounds = (number << CLASS_BITS, (number + 1 << CLASS_BITS) - 1)
        fill(cache, "inventory", connection.execute(statement, bounds).fetchall())
    for number in footprint.whole_classes:
        fill(cache, "inventory", connection.execute(_INVENTORIES_OF_CLASS, (number,)).fetchall())
    for number in footprint.whole_traits:
        fill(cache, "provider_trait", connection.execute(_TRAITS_OF_PROVIDERS_WITH_TRAIT, (number,)).fetchall())
    for number in footprint.dropped_groups:
        _read(connection, cache, PLACE, columns=("group_id",), values=((number,),))
        fill(cache, "instance", connection.execute(_INSTANCES_OF_GROUP, (number,)).fetchall())
    roots = {provider.root_id for number in footprint.trees if (provider := cache.providers.get(number))}
    _read(connection, cache, PROVIDER, columns=("root_id",), values=((number,) for number in roots))
    return cache


def _read(
    connection: sqlite3.Connection,
    cache: RowCache,
    table: Table,
    *,
    columns: tuple[str, ...],
    values: Iterable[Values],
) -> None:
    statement = select(table, _where(columns))
    for value in values:
        rows = connection.execute(statement, value).fetchall()
        if rows:
            fill(cache, table.name, rows)


def write_changes(connection: sqlite3.Connection, cache: RowCache) -> None:
    """Write the changes of accepted items, in the running transaction."""
    for change in table_changes(cache):
        table = change.table
        if change.deletions:
            connection.executemany(delete(table), change.deletions)
        if change.updates:
            connection.executemany(insert(table).replace("INSERT", "INSERT OR REPLACE", 1), change.updates)
        if change.insertions:
            connection.executemany(insert(table), change.insertions)
