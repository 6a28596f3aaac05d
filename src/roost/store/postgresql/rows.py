"""The statements of the PostgreSQL store that write a batch."""

import functools
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import psycopg

from roost.model.writes import CLASS_BITS
from roost.store.postgresql.arrays import Array, columns_of, unnest
from roost.store.rules.batch import Batch, phases_of_claims, phases_of_releases
from roost.store.rules.codec import CODECS, encode_writes, fill, table_changes
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
    ColumnType,
    Table,
    select,
)
from roost.store.rules.vector import ChangeKey

Connection = psycopg.Connection[tuple[Any, ...]]

# Rows are locked in the order of their ids before the first of them changes, so two batches never deadlock. Places
# are locked after all inventories, and server groups before them. A statement that waited for a lock reads the newest
# version of the row, so the guard judges current rows. It checks the peak rather than the sum: if a release follows a
# claim, the claim must fit before the release.
# A lock on its group keeps a claim from a concurrent deletion of the group, and shares it with other claims.
_LOCK_GROUPS = """
locked_groups AS MATERIALIZED (
    SELECT id FROM server_group WHERE id = ANY (%b::bigint[]) ORDER BY id FOR KEY SHARE)"""
# ``waited`` has the time until the last lock. Without waits, it is a small part of the statement.
_CLAIM_INVENTORIES = """
lock_start AS MATERIALIZED (SELECT clock_timestamp() AS at WHERE {after}),
locked AS MATERIALIZED (
    SELECT id FROM inventory WHERE id = ANY (%b::bigint[]) AND (SELECT count(*) FROM lock_start) >= 0
    ORDER BY id FOR UPDATE),
waited AS MATERIALIZED (
    SELECT extract(epoch FROM clock_timestamp() - at)::float8 AS waited_s FROM lock_start
    WHERE (SELECT count(*) FROM locked) >= 0),
claimed AS (
    UPDATE inventory i SET used = i.used + w.added
    FROM {rows} AS w (id, added, peak, minimum, maximum, divisor)
    WHERE i.id = w.id AND (SELECT count(*) FROM waited) >= 0
      AND i.used + w.peak <= (i.total - i.reserved) * i.allocation_ratio
      AND w.minimum >= i.min_unit AND w.maximum <= i.max_unit AND w.divisor %% i.step_size = 0
    RETURNING 1)"""
_WRITE_PLACES = """
place_changes AS MATERIALIZED (
    SELECT * FROM {rows} AS w (group_id, scope, holder, added, max_members) ORDER BY group_id, scope),
written_places AS (
    INSERT INTO place AS p (group_id, scope, holder, members)
    SELECT group_id, scope, holder, added FROM place_changes WHERE {after}
    ON CONFLICT (group_id, scope) DO UPDATE SET holder = excluded.holder, members = p.members + excluded.members
    WHERE p.members = 0 OR p.holder = excluded.holder
    RETURNING group_id, scope, members),
valid_places AS (
    SELECT 1 FROM written_places JOIN place_changes USING (group_id, scope) WHERE members BETWEEN 0 AND max_members)"""
_RELEASE = """
deleted_allocations AS (
    DELETE FROM allocation a USING {rows} AS w (consumer_id, inventory_id, amount)
    WHERE a.consumer_id = w.consumer_id AND a.inventory_id = w.inventory_id AND a.amount = w.amount
    RETURNING 1),
held_allocations AS (SELECT 1 FROM allocation WHERE consumer_id = ANY (%b::bigint[])),
deleted_instances AS (DELETE FROM instance WHERE consumer_id = ANY (%b::bigint[])),
deleted_consumers AS (DELETE FROM consumer WHERE id = ANY (%b::bigint[]) RETURNING id, uuid)"""
# Consumers claimed before the release of the consumer with the same uuid.
_EARLY_CLAIMS = """
early_claims AS (
    SELECT 1 FROM deleted_consumers JOIN {released} AS r (id, phase) USING (id)
    JOIN {claimed} AS c (uuid, phase) USING (uuid) WHERE c.phase < r.phase)"""
_FEED = "change AS (INSERT INTO feed (writer, seq, body) VALUES (%b, %b, %b) RETURNING position)"
_BIGINTS: tuple[ColumnType, ...] = ("bigint",) * 6


class Statement(NamedTuple):
    """SQL text and its values."""

    text: str
    values: Sequence[object]


def batch_statement(batch: Batch, key: ChangeKey | None) -> Statement:
    """Return the one statement that writes a batch; it fails with a division by zero if a guard does not pass.

    Args:
        batch: the net effect of its items.
        key: of its change; None: it has no change.
    """
    parts, values, counts = [], list[object](), dict[str, int]()
    if batch.groups:
        parts.append("groups")
        values.append(Array("bigint", sorted(batch.groups)))
        counts["locked_groups"] = len(batch.groups)
    if batch.stocks:
        rows = [(number, *amounts) for number, amounts in sorted(batch.stocks.items())]
        columns = columns_of(_BIGINTS, rows)
        parts.append("inventories")
        values += [columns[0], *columns]
        counts["claimed"] = len(rows)
    if batch.places:
        parts.append("places")
        values += columns_of(_BIGINTS[:5], [(*key, *amounts) for key, amounts in batch.places.items()])
        counts["valid_places"] = len(batch.places)
    if batch.released:
        released = Array("bigint", list(batch.released))
        parts.append("release")
        values += [*columns_of(_BIGINTS[:3], batch.frees), released, released, released]
        # The consumers exist and have no other allocations: ``held_allocations`` counts the rows before this statement.
        counts |= {
            "deleted_allocations": len(batch.frees),
            "held_allocations": len(batch.frees),
            "deleted_consumers": len(batch.released),
        }
    if batch.phases:
        parts.append("early claims")
        values += columns_of(_BIGINTS[:2], phases_of_releases(batch))
        values += columns_of(("uuid", "bigint"), phases_of_claims(batch))
        counts["early_claims"] = 0
    for table, new_rows in (
        (CONSUMER, list(batch.consumers.values())),
        (ALLOCATION, batch.allocations),
        (INSTANCE, batch.instances),
        (DOCUMENT, batch.documents),
        (DECISION, batch.decisions),
        (CHANGE_RECORD, batch.trail),
    ):
        if new_rows:
            parts.append(table.name)
            values += columns_of(table.types, new_rows)
    if key is not None:
        parts.append("feed")
        values += [key.writer, key.seq, encode_writes(batch.writes)]
    return Statement(_text(tuple(parts), tuple(counts)), [*values, *counts.values()])


_INSERTS = {table.name: table for table in (CONSUMER, ALLOCATION, INSTANCE, DOCUMENT, DECISION, CHANGE_RECORD)}


@functools.cache
def _text(parts: tuple[str, ...], counted: tuple[str, ...]) -> str:
    queries = []
    locks = [name for part, name in (("groups", "locked_groups"), ("inventories", "claimed")) if part in parts]
    for part in parts:
        match part:
            case "groups":
                queries.append(_LOCK_GROUPS)
            case "inventories":
                queries.append(_CLAIM_INVENTORIES.format(rows=unnest(_BIGINTS), after=_after(locks[:-1])))
            case "places":
                queries.append(_WRITE_PLACES.format(rows=unnest(_BIGINTS[:5]), after=_after(locks)))
            case "release":
                queries.append(_RELEASE.format(rows=unnest(_BIGINTS[:3])))
            case "early claims":
                released, claimed = unnest(_BIGINTS[:2]), unnest(("uuid", "bigint"))
                queries.append(_EARLY_CLAIMS.format(released=released, claimed=claimed))
            case "feed":
                queries.append(_FEED)
            case CONSUMER.name if "release" in parts:
                # Insert after the deletion, since a new consumer may have the uuid of a released one.
                after = "WHERE (SELECT count(*) FROM deleted_consumers) >= 0"
                queries.append(f"consumer_rows AS ({_insert(CONSUMER)} {after} RETURNING 1)")
            case name:
                queries.append(f"{name}_rows AS ({_insert(_INSERTS[name])} RETURNING 1)")
    position = "(SELECT position FROM change)" if "feed" in parts else "0::bigint"
    checks = " AND ".join(f"(SELECT count(*) FROM {name}) = %b::bigint" for name in counted) or "true"  # noqa: S608
    head = f"WITH {', '.join(queries)}" if queries else ""
    waited = "(SELECT waited_s FROM waited)" if "inventories" in parts else "NULL::float8"
    return f"{head} SELECT {position}, 1 / (CASE WHEN {checks} THEN 1 ELSE 0 END), {waited}"


def _after(names: Sequence[str]) -> str:
    """Return a true condition whose evaluation runs other parts of the statement first."""
    return " AND ".join(f"(SELECT count(*) FROM {name}) >= 0" for name in names) or "true"  # noqa: S608  # our names


def _insert(table: Table) -> str:
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) SELECT * FROM {unnest(table.types)}"  # noqa: S608


def _key_condition(table: Table, columns: tuple[str, ...]) -> str:
    types = table.types_of(columns)
    if len(columns) == 1:
        return f"WHERE {columns[0]} = ANY (%b::{types[0]}[])"
    return f"WHERE ({', '.join(columns)}) IN (SELECT * FROM {unnest(types)})"  # noqa: S608


# Structural writes happen one transaction at a time, so no other transaction adds inventories or traits meanwhile.
_INVENTORIES_OF_CLASSES = f"WHERE id %% {1 << CLASS_BITS} = ANY (%b::bigint[])"
_TRAITS_OF_PROVIDERS_WITH_TRAITS = """
WHERE provider_id IN (SELECT provider_id FROM provider_trait WHERE trait_id = ANY (%b::bigint[])) ORDER BY provider_id
"""
# The second condition selects the partial index.
_INSTANCES_OF_GROUPS = "WHERE group_id = ANY (%b::bigint[]) AND group_id <> 0"


def lock_and_read(connection: Connection, footprint: Footprint) -> RowCache:
    """Lock the rows that a concurrent batch could change, then read all rows of a footprint.

    Each statement sees all commits before its start. So rows that are read after locking stay unchanged until this
    transaction writes them. Structural writes happen one transaction at a time.
    """
    if footprint.is_structural:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('roost structure'))")
    _lock_groups(connection, footprint)
    ranges = [(number << CLASS_BITS, (number + 1 << CLASS_BITS) - 1) for number in sorted(footprint.whole_providers)]
    singles = Array("bigint", sorted(footprint.stock_ids))
    lows, highs = columns_of(("bigint", "bigint"), ranges)
    where = (
        "WHERE id IN (SELECT unnest(%b::bigint[]) UNION SELECT i.id FROM unnest(%b::bigint[], %b::bigint[]) "
        "AS r (low, high), inventory i WHERE i.id BETWEEN r.low AND r.high) ORDER BY id FOR UPDATE"
    )
    cache = RowCache()
    rows = _fetch_all(connection, select(INVENTORY, where), (singles, lows, highs))
    fill(cache, "inventory", rows)
    if footprint.place_keys:
        keys = columns_of(("bigint", "bigint"), sorted(footprint.place_keys))
        # An absent place cannot be locked, so insert it without members: any holder can claim such a place.
        connection.execute(
            "INSERT INTO place (group_id, scope, holder, members) SELECT w.*, 0, 0 "
            "FROM unnest(%b::bigint[], %b::bigint[]) AS w (group_id, scope) "
            "WHERE EXISTS (SELECT 1 FROM server_group g WHERE g.id = w.group_id) ON CONFLICT DO NOTHING",
            keys,
        )
        where = _key_condition(PLACE, PLACE.key) + " ORDER BY group_id, scope FOR UPDATE"
        fill(cache, "place", _fetch_all(connection, select(PLACE, where), keys))
    # These reads lock rows of work. All processes read in the same order, so two commits never deadlock.
    for (name, columns), values in sorted(footprint.lookups.items(), key=itemgetter(0)):
        _read(connection, cache, CODECS[name].table, columns=columns, values=values)
    for table, where, numbers in (
        (INVENTORY, _INVENTORIES_OF_CLASSES, footprint.whole_classes),
        (PROVIDER_TRAIT, _TRAITS_OF_PROVIDERS_WITH_TRAITS, footprint.whole_traits),
        (PLACE, "WHERE group_id = ANY (%b::bigint[])", footprint.dropped_groups),
        (INSTANCE, _INSTANCES_OF_GROUPS, footprint.dropped_groups),
    ):
        if numbers:
            rows = _fetch_all(connection, select(table, where), (Array("bigint", sorted(numbers)),))
            fill(cache, table.name, rows)
    roots = {provider.root_id for number in footprint.trees if (provider := cache.providers.get(number))}
    if roots:
        _read(connection, cache, PROVIDER, columns=("root_id",), values=((number,) for number in roots))
    return cache


def _lock_groups(connection: Connection, footprint: Footprint) -> None:
    """Lock server groups against claims before their deletion, and against deletion before claims."""
    dropped = footprint.dropped_groups
    for numbers, lock in ((dropped, "UPDATE"), (footprint.joined_groups - dropped, "KEY SHARE")):
        if numbers:
            text = f"SELECT id FROM server_group WHERE id = ANY (%b::bigint[]) ORDER BY id FOR {lock}"  # noqa: S608
            connection.execute(text, (Array("bigint", sorted(numbers)),))


def _read(
    connection: Connection, cache: RowCache, table: Table, *, columns: tuple[str, ...], values: Iterable[Values]
) -> None:
    arrays = columns_of(table.types_of(columns), list(values))
    where = f"{_key_condition(table, columns)} ORDER BY {', '.join(table.key)}"
    if table.is_updated and columns == table.key:
        where += " FOR UPDATE"
    fill(cache, table.name, _fetch_all(connection, select(table, where), arrays))


def _fetch_all(connection: Connection, text: str, values: Sequence[object]) -> list[Any]:
    return connection.execute(text, values, binary=True).fetchall()


def write_changes(connection: Connection, cache: RowCache) -> bool:
    """Write the changes of accepted items, in the running transaction.

    Returns:
        False if another process deleted a consumer after it was read: consumers are read without a lock.
    """
    for change in table_changes(cache):
        table = change.table
        if change.deletions:
            text = f"DELETE FROM {table.name} {_key_condition(table, table.key)}"  # noqa: S608
            cursor = connection.execute(text, columns_of(table.types_of(table.key), change.deletions))
            if table is CONSUMER and cursor.rowcount != len(change.deletions):
                return False
        if change.updates:
            connection.execute(_update(table), columns_of(table.types, change.updates))
        if change.insertions:
            connection.execute(_insert(table), columns_of(table.types, change.insertions))
    return True


def _update(table: Table) -> str:
    sets = ", ".join(f"{column} = w.{column}" for column in table.columns if column not in table.key)
    match = " AND ".join(f"t.{column} = w.{column}" for column in table.key)
    source = f"{unnest(table.types)} AS w ({', '.join(table.columns)})"
    return f"UPDATE {table.name} AS t SET {sets} FROM {source} WHERE {match}"  # noqa: S608
