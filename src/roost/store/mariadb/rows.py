"""The statements of the MariaDB store for a batch."""

from collections.abc import Iterable
from operator import itemgetter

from roost.model.writes import CLASS_BITS
from roost.store.mariadb.connection import Connection
from roost.store.mariadb.script import (
    LOCK_EPOCH,
    Script,
    fill_in,
    insertions,
    key_condition,
    literal,
    replacements,
    subquery,
)
from roost.store.mariadb.stock_update import stock_updates
from roost.store.rules.batch import Batch, phases_of_claims, phases_of_releases
from roost.store.rules.codec import CODECS, encode_writes, fill, table_changes
from roost.store.rules.feed.stale_state import DatabaseRestored
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
from roost.store.rules.vector import ChangeKey

# Rows are locked in the order of their ids, so two batches never deadlock. Groups come first, then inventories, then
# places. A statement that waited for a lock reads the newest version of the row, so the guard judges current rows.
# A verdict may depend on changed rows only: nodes of a cluster notice no other conflicts. So ``guard`` changes where a
# verdict depends on a row that stays the same.
_GUARD = "UPDATE {table} FORCE INDEX (PRIMARY) SET guard = 1 - guard WHERE {condition} ORDER BY {order}"
_PLACE_END = """
 ON DUPLICATE KEY UPDATE holder = IF(members = 0, VALUES(holder), holder), members = members + VALUES(members)"""
_VALID_PLACES = """
(SELECT count(*) FROM {rows} AS w STRAIGHT_JOIN place AS p ON p.group_id = w.group_id AND p.scope = w.scope
 WHERE p.holder = w.holder AND p.members BETWEEN 0 AND w.max_members)"""
_FREE = """
DELETE a FROM {rows} AS w STRAIGHT_JOIN allocation AS a FORCE INDEX (PRIMARY)
ON a.consumer_id = w.consumer_id AND a.inventory_id = w.inventory_id AND a.amount = w.amount"""
# Consumers claimed before the release of the consumer with the same uuid.
_EARLY_CLAIMS = """
EXISTS (SELECT 1 FROM {released} AS r STRAIGHT_JOIN consumer AS c ON c.id = r.id
        JOIN {claimed} AS k ON k.uuid = c.uuid WHERE k.phase < r.phase)"""
_FEED = "INSERT INTO feed (written_at_s, writer, seq, body) VALUES (UNIX_TIMESTAMP(SYSDATE(6)), ?, ?, ?)"
_STRUCTURE = "UPDATE turn SET number = number + 1 WHERE name = 'structure'"


def batch_script(batch: Batch, key: ChangeKey | None, *, epoch: int) -> str:
    """Return the script of a batch; it answers with the position of the change, or with a failed guard.

    Args:
        batch: the net effect of its items.
        key: of its change; None: it has no change.
        epoch: of the state of the process.
    """
    script = Script(epoch)
    if batch.groups:
        script.add_exact(_guard("server_group", ("id",), [(number,) for number in batch.groups]), len(batch.groups))
    for update in stock_updates(batch.stocks):
        for text in update.statements:
            script.add(text)
        script.require(update.condition)
    if batch.places:
        places = sorted((*place, *amounts) for place, amounts in batch.places.items())
        for text in insertions(PLACE, [place[:4] for place in places], end=_PLACE_END):
            script.add(text)
        script.require(
            f"{_VALID_PLACES.format(rows=subquery('group_id scope holder added max_members', places))} = {len(places)}"
        )
    if batch.released:
        _add_release(script, batch)
    for table, new_rows in (
        (CONSUMER, batch.consumers.values()),
        (ALLOCATION, batch.allocations),
        (INSTANCE, batch.instances),
        (DOCUMENT, batch.documents),
        (DECISION, batch.decisions),
        (CHANGE_RECORD, batch.trail),
    ):
        for text in insertions(table, new_rows):
            script.add(text)
    if key is not None:
        # The position is assigned after all locks are held, so later changes of a row have higher positions.
        script.add_change(change_statement(key, encode_writes(batch.writes)))
    return script.text()


def _add_release(script: Script, batch: Batch) -> None:
    released = literal(batch.released)
    if batch.phases:
        script.require(
            "NOT "
            + _EARLY_CLAIMS.format(
                released=subquery("id phase", phases_of_releases(batch)),
                claimed=subquery("uuid phase", phases_of_claims(batch)),
            )
        )
    if batch.frees:
        rows = subquery("consumer_id inventory_id amount", sorted(batch.frees))
        script.add_exact(_FREE.format(rows=rows), len(batch.frees))
    script.require(f"NOT EXISTS (SELECT 1 FROM allocation WHERE consumer_id IN {released})")  # noqa: S608  # numbers
    script.add(f"DELETE FROM instance WHERE consumer_id IN {released}")  # noqa: S608  # numbers
    script.add_exact(f"DELETE FROM consumer WHERE id IN {released}", len(batch.released))  # noqa: S608  # numbers


def change_statement(key: ChangeKey, body: bytes) -> str:
    """Return the statement to write a change."""
    return fill_in(_FEED, (key.writer, key.seq, body))


def _guard(table: str, columns: tuple[str, ...], keys: Iterable[Values]) -> str:
    condition = key_condition(columns, sorted(keys))
    return _GUARD.format(table=table, condition=condition, order=", ".join(columns))


# Structural writes happen one transaction at a time, so no other transaction adds inventories or traits meanwhile.
_INVENTORIES_OF_CLASSES = f"WHERE id % {1 << CLASS_BITS} IN ?"
_TRAITS_OF_PROVIDERS_WITH_TRAITS = """
WHERE provider_id IN (SELECT provider_id FROM provider_trait WHERE trait_id IN ?) ORDER BY provider_id"""
_INSTANCES_OF_GROUPS = "WHERE group_id IN ? AND group_id <> 0"
# An absent place cannot be locked, so insert it without members: any holder can claim such a place.
_ADD_PLACES = """
INSERT INTO place (group_id, scope, holder, members) SELECT w.group_id, w.scope, 0, 0 FROM {rows} AS w
WHERE EXISTS (SELECT 1 FROM server_group g WHERE g.id = w.group_id) ON DUPLICATE KEY UPDATE guard = 1 - place.guard"""


def lock_and_read(connection: Connection, footprint: Footprint, *, epoch: int) -> RowCache:
    """Begin a transaction, lock the rows of concurrent batches, and read all rows of a footprint.

    Each statement sees all commits before its start. So rows that are read after locking stay unchanged until this
    transaction writes them. Structural writes happen one transaction at a time.

    Args:
        epoch: of the state of the process.

    Raises:
        DatabaseRestored: the database has another epoch.
    """
    begin = connection.run(["START TRANSACTION", LOCK_EPOCH, *([_STRUCTURE] if footprint.is_structural else [])])
    if [tuple(row) for row in begin[1].rows] != [(epoch,)]:
        raise DatabaseRestored
    connection.run(_locks(footprint))
    cache = RowCache()
    reads = list(_reads(footprint))
    for (table, _), result in zip(reads, connection.run(text for _, text in reads), strict=True):
        fill(cache, table.name, list(result.rows))
    roots = {provider.root_id for number in footprint.trees if (provider := cache.providers.get(number))}
    if roots:
        result = connection.execute(_read(PROVIDER, ("root_id",), ((number,) for number in roots)))
        fill(cache, PROVIDER.name, list(result.rows))
    return cache


def _locks(footprint: Footprint) -> Iterable[str]:
    """Yield statements with locks; all processes use the same order, so two commits never deadlock."""
    groups = footprint.joined_groups | footprint.dropped_groups
    if groups:
        yield _guard("server_group", ("id",), [(number,) for number in groups])
    if footprint.stock_ids or footprint.whole_providers:
        yield _GUARD.format(table="inventory", condition=_inventories(footprint), order="id")
    if footprint.place_keys:
        yield _ADD_PLACES.format(rows=subquery("group_id scope", sorted(footprint.place_keys)))
    for (name, columns), values in sorted(footprint.lookups.items(), key=itemgetter(0)):
        table = CODECS[name].table
        if table.is_updated and columns == table.key:
            yield _guard(name, columns, values)


def _inventories(footprint: Footprint) -> str:
    ranges = [
        f"id BETWEEN {number << CLASS_BITS} AND {(number + 1 << CLASS_BITS) - 1}"
        for number in sorted(footprint.whole_providers)
    ]
    singles = [f"id IN {literal(sorted(footprint.stock_ids))}"] if footprint.stock_ids else []
    return " OR ".join((*singles, *ranges))


def _reads(footprint: Footprint) -> Iterable[tuple[Table, str]]:
    if footprint.stock_ids or footprint.whole_providers:
        yield INVENTORY, select(INVENTORY, f"WHERE {_inventories(footprint)} ORDER BY id")
    if footprint.place_keys:
        yield PLACE, _read(PLACE, PLACE.key, footprint.place_keys)
    for (name, columns), values in sorted(footprint.lookups.items(), key=itemgetter(0)):
        yield CODECS[name].table, _read(CODECS[name].table, columns, values)
    for table, where, numbers in (
        (INVENTORY, _INVENTORIES_OF_CLASSES, footprint.whole_classes),
        (PROVIDER_TRAIT, _TRAITS_OF_PROVIDERS_WITH_TRAITS, footprint.whole_traits),
        (PLACE, "WHERE group_id IN ?", footprint.dropped_groups),
        (INSTANCE, _INSTANCES_OF_GROUPS, footprint.dropped_groups),
    ):
        if numbers:
            yield table, fill_in(select(table, where), (sorted(numbers),))


def _read(table: Table, columns: tuple[str, ...], values: Iterable[Values]) -> str:
    return select(table, f"WHERE {key_condition(columns, values)} ORDER BY {', '.join(table.key)}")


def write_changes(connection: Connection, cache: RowCache) -> bool:
    """Write the changes of accepted items, in the running transaction.

    Returns:
        False if another process deleted a consumer after it was read: consumers are read without a lock.
    """
    texts = list[str]()
    consumers: tuple[int, int] | None = None  # place of the statement that deletes consumers, and their number
    for change in table_changes(cache):
        table = change.table
        if change.deletions:
            if table is CONSUMER:
                consumers = (len(texts), len(change.deletions))
            texts.append(f"DELETE FROM {table.name} WHERE {key_condition(table.key, change.deletions)}")  # noqa: S608
        texts += replacements(table, change.updates)
        texts += insertions(table, change.insertions)
    results = connection.run(texts)
    return consumers is None or results[consumers[0]].row_count == consumers[1]
