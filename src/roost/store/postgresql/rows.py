"""The statements of the PostgreSQL store that write a batch."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import psycopg

from roost.model.writes import CLASS_BITS
from roost.store.postgresql.arrays import Array, columns_of, unnest
from roost.store.rules.batch import Batch
from roost.store.rules.codec import CODECS, encode_writes, fill, rewrites
from roost.store.rules.footprint import Touched, Value, Values
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
    ColumnType,
    Table,
    select,
)

Connection = psycopg.Connection[tuple[Any, ...]]

# Rows are locked in the order of their identities before the first of them changes, so that two batches
# never wait for each other; places follow when all inventories are had. A statement that was overtaken looks
# at the newest version of each row it locked, so the guard judges rows as they are now. The peak is checked
# rather than the sum: a batch that gives back what it took must have had room for it.
_TAKE = """
locked AS MATERIALIZED (SELECT id FROM inventory WHERE id = ANY (%b::bigint[]) ORDER BY id FOR UPDATE),
taken AS (
    UPDATE inventory i SET used = i.used + w.added
    FROM {rows} AS w (id, added, peak, least, most, divisor)
    WHERE i.id = w.id AND (SELECT count(*) FROM locked) >= 0
      AND i.used + w.peak <= (i.total - i.reserved) * i.allocation_ratio
      AND w.least >= i.min_unit AND w.most <= i.max_unit AND w.divisor %% i.step_size = 0
    RETURNING 1)"""
_SIT = """
wanted AS MATERIALIZED (
    SELECT * FROM {rows} AS w (group_id, scope, holder, added, most) ORDER BY group_id, scope),
seated AS (
    INSERT INTO place AS p (group_id, scope, holder, members)
    SELECT group_id, scope, holder, added FROM wanted WHERE (SELECT count(*) FROM {after}) >= 0
    ON CONFLICT (group_id, scope) DO UPDATE SET holder = excluded.holder, members = p.members + excluded.members
    WHERE p.members = 0 OR p.holder = excluded.holder
    RETURNING group_id, scope, members),
sat AS (
    SELECT 1 FROM seated JOIN wanted USING (group_id, scope) WHERE members BETWEEN 0 AND most)"""
_FREE = """
freed AS (
    DELETE FROM allocation a USING {rows} AS w (consumer_id, inventory_id, amount)
    WHERE a.consumer_id = w.consumer_id AND a.inventory_id = w.inventory_id AND a.amount = w.amount
    RETURNING 1),
more AS (SELECT 1 FROM allocation WHERE consumer_id = ANY (%b::bigint[])),
moved_out AS (DELETE FROM instance WHERE consumer_id = ANY (%b::bigint[])),
ended AS (DELETE FROM consumer WHERE id = ANY (%b::bigint[]) RETURNING id, uuid)"""
# Who comes before the one whose uuid it gets has gone.
_EARLY = """
early AS (
    SELECT 1 FROM ended JOIN {gone} AS g (id, turn) USING (id) JOIN {come} AS c (uuid, turn) USING (uuid)
    WHERE c.turn < g.turn)"""
_FEED = "fed AS (INSERT INTO feed (token, body) VALUES (%b, %b) RETURNING position)"
_BIGINTS: tuple[ColumnType, ...] = ("bigint",) * 6


class Statement(NamedTuple):
    """SQL and what goes into it."""

    text: str
    values: Sequence[object]


def batch_statement(batch: Batch, token: int) -> Statement:
    """Return the one statement that writes a batch; it fails with a division by zero if a guard does not pass."""
    parts, values, counts = [], list[object](), dict[str, int]()
    if batch.stocks:
        rows = [(number, *amounts) for number, amounts in sorted(batch.stocks.items())]
        columns = columns_of(_BIGINTS, rows)
        parts.append("take")
        values += [columns[0], *columns]
        counts["taken"] = len(rows)
    if batch.places:
        parts.append("sit" if batch.stocks else "sit first")
        values += columns_of(_BIGINTS[:5], [(*key, *amounts) for key, amounts in batch.places.items()])
        counts["sat"] = len(batch.places)
    if batch.released:
        released = Array("bigint", list(batch.released))
        parts.append("free")
        values += [*columns_of(_BIGINTS[:3], batch.frees), released, released, released]
        # Both the consumers and what they hold were there; ``more`` sees the rows as they were before.
        counts |= {"freed": len(batch.frees), "more": len(batch.frees), "ended": len(batch.released)}
    if batch.turns:
        parts.append("early")
        values += [*columns_of(_BIGINTS[:2], _turns(batch, 0)), *columns_of(("uuid", "bigint"), _turns(batch, 1))]
        counts["early"] = 0
    for table, fresh in (
        (CONSUMER, list(batch.consumers.values())),
        (ALLOCATION, batch.allocations),
        (INSTANCE, batch.instances),
        (DOCUMENT, batch.documents),
        (DECISION, batch.decisions),
    ):
        if fresh:
            parts.append(table.name)
            values += columns_of(table.types, fresh)
    if batch.writes:
        parts.append("feed")
        values += [token, encode_writes(batch.writes)]
    return Statement(_text(tuple(parts), tuple(counts)), [*values, *counts.values()])


def _turns(batch: Batch, side: int) -> list[Values]:
    """Return who goes (0: numbers) or who comes (1: uuids), with the turns of the batch in which they do."""
    who: Sequence[Value] = list(batch.released) if side == 0 else [row[_UUID] for row in batch.consumers.values()]
    ends = [turn[side] for turn in batch.turns]
    return [(one, bisect_right(ends, at)) for at, one in enumerate(who)]


_UUID = CONSUMER.columns.index("uuid")
_INSERTS = {table.name: table for table in (CONSUMER, ALLOCATION, INSTANCE, DOCUMENT, DECISION)}


@cache
def _text(parts: tuple[str, ...], counted: tuple[str, ...]) -> str:
    queries = []
    for part in parts:
        match part:
            case "take":
                queries.append(_TAKE.format(rows=unnest(_BIGINTS)))
            case "sit":
                queries.append(_SIT.format(rows=unnest(_BIGINTS[:5]), after="taken"))
            case "sit first":
                queries.append(_SIT.format(rows=unnest(_BIGINTS[:5]), after="(SELECT 1) AS one"))
            case "free":
                queries.append(_FREE.format(rows=unnest(_BIGINTS[:3])))
            case "early":
                queries.append(_EARLY.format(gone=unnest(_BIGINTS[:2]), come=unnest(("uuid", "bigint"))))
            case "feed":
                queries.append(_FEED)
            case CONSUMER.name if "free" in parts:
                # A uuid is free for the next one only once its consumer has gone.
                after = "WHERE (SELECT count(*) FROM ended) >= 0"
                queries.append(f"consumer_rows AS ({_insert(CONSUMER)} {after} RETURNING 1)")
            case name:
                queries.append(f"{name}_rows AS ({_insert(_INSERTS[name])} RETURNING 1)")
    position = "(SELECT position FROM fed)" if "feed" in parts else "0::bigint"
    checks = " AND ".join(f"(SELECT count(*) FROM {name}) = %b::bigint" for name in counted) or "true"  # noqa: S608
    head = f"WITH {', '.join(queries)}" if queries else ""
    return f"{head} SELECT {position}, 1 / (CASE WHEN {checks} THEN 1 ELSE 0 END)"


def _insert(table: Table) -> str:
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) SELECT * FROM {unnest(table.types)}"  # noqa: S608


def _key_condition(table: Table, columns: tuple[str, ...]) -> str:
    types = table.types_of(columns)
    if len(columns) == 1:
        return f"WHERE {columns[0]} = ANY (%b::{types[0]}[])"
    return f"WHERE ({', '.join(columns)}) IN (SELECT * FROM {unnest(types)})"  # noqa: S608


# Structural writes happen one transaction at a time, so nobody else offers a class or puts on a trait meanwhile.
_OFFERED = f"WHERE id %% {1 << CLASS_BITS} = ANY (%b::bigint[])"
_WORN = """
WHERE provider_id IN (SELECT provider_id FROM provider_trait WHERE trait_id = ANY (%b::bigint[])) ORDER BY provider_id
"""


def lock_and_read(connection: Connection, touched: Touched) -> Shelves:
    """Lock what a concurrent batch could change, then read all that a verdict looks at.

    Each statement sees what was committed before it began, so rows read after the locks were had are as they
    will be when this transaction writes them. Structural writes happen one transaction at a time.
    """
    if touched.is_structural:
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('roost structure'))")
    ranges = [(number << CLASS_BITS, (number + 1 << CLASS_BITS) - 1) for number in sorted(touched.whole_providers)]
    singles = Array("bigint", sorted(touched.stock_ids))
    lows, highs = columns_of(("bigint", "bigint"), ranges)
    wanted = (
        "WHERE id IN (SELECT unnest(%b::bigint[]) UNION SELECT i.id FROM unnest(%b::bigint[], %b::bigint[]) "
        "AS r (low, high), inventory i WHERE i.id BETWEEN r.low AND r.high) ORDER BY id FOR UPDATE"
    )
    shelves = Shelves()
    rows = _all(connection, select(INVENTORY, wanted), (singles, lows, highs))
    fill(shelves, "inventory", rows)
    if touched.place_keys:
        keys = columns_of(("bigint", "bigint"), sorted(touched.place_keys))
        # A place that is not there cannot be locked; one without members is free for all.
        connection.execute(
            "INSERT INTO place (group_id, scope, holder, members) SELECT w.*, 0, 0 "
            "FROM unnest(%b::bigint[], %b::bigint[]) AS w ON CONFLICT DO NOTHING",
            keys,
        )
        where = _key_condition(PLACE, PLACE.key) + " ORDER BY group_id, scope FOR UPDATE"
        fill(shelves, "place", _all(connection, select(PLACE, where), keys))
    # In one order for all, since rows of work are locked by this: two commits never wait for each other.
    for (name, columns), values in sorted(touched.lookups.items(), key=itemgetter(0)):
        _read(connection, shelves, CODECS[name].table, columns=columns, values=values)
    for table, where, numbers in (
        (INVENTORY, _OFFERED, touched.offered),
        (PROVIDER_TRAIT, _WORN, touched.worn),
    ):
        if numbers:
            rows = _all(connection, select(table, where), (Array("bigint", sorted(numbers)),))
            fill(shelves, table.name, rows)
    roots = {provider.root_id for number in touched.trees if (provider := shelves.providers.get(number))}
    if roots:
        _read(connection, shelves, PROVIDER, columns=("root_id",), values=((number,) for number in roots))
    return shelves


def _read(
    connection: Connection, shelves: Shelves, table: Table, *, columns: tuple[str, ...], values: Iterable[Values]
) -> None:
    arrays = columns_of(table.types_of(columns), list(values))
    where = f"{_key_condition(table, columns)} ORDER BY {', '.join(table.key)}"
    if table.is_updated and columns == table.key:
        where += " FOR UPDATE"
    fill(shelves, table.name, _all(connection, select(table, where), arrays))


def _all(connection: Connection, text: str, values: Sequence[object]) -> list[Any]:
    return connection.execute(text, values, binary=True).fetchall()


def write_changed(connection: Connection, shelves: Shelves) -> bool:
    """Write what accepted items changed, in the running transaction.

    Returns:
        False if another process was faster with a row that cannot be locked before it is read.
    """
    for rewrite in rewrites(shelves):
        table = rewrite.table
        if rewrite.gone:
            text = f"DELETE FROM {table.name} {_key_condition(table, table.key)}"  # noqa: S608
            cursor = connection.execute(text, columns_of(table.types_of(table.key), rewrite.gone))
            if table is CONSUMER and cursor.rowcount != len(rewrite.gone):
                return False
        if rewrite.updated:
            connection.execute(_update(table), columns_of(table.types, rewrite.updated))
        if rewrite.fresh:
            connection.execute(_insert(table), columns_of(table.types, rewrite.fresh))
    return True


def _update(table: Table) -> str:
    sets = ", ".join(f"{column} = w.{column}" for column in table.columns if column not in table.key)
    match = " AND ".join(f"t.{column} = w.{column}" for column in table.key)
    source = f"{unnest(table.types)} AS w ({', '.join(table.columns)})"
    return f"UPDATE {table.name} AS t SET {sets} FROM {source} WHERE {match}"  # noqa: S608
