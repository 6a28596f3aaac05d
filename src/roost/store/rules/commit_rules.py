"""The verdict on one item in plain Python: the reference for the statements of every store."""

from collections.abc import Iterable, Sequence

from roost.model.names import uuid_text
from roost.model.work.work_rows import ChangeRow, Put
from roost.model.writes import Item, Refusal, Write
from roost.store.rules.footprint import Footprint
from roost.store.rules.row_cache import RowCache
from roost.store.rules.schema import CHANGE_RECORD, WORK, Table
from roost.store.rules.writes import WRITE_RULES
from roost.store.rules.writes.providers import judge_trees


def are_committable(items: Sequence[Item]) -> bool:
    """Return whether all writes are of kinds that can be committed."""
    return all(type(write) in WRITE_RULES for item in items for write in item.writes)


def find_footprint(items: Iterable[Item]) -> Footprint:
    """Return the keys of the rows that ``judge`` needs for these items."""
    footprint = Footprint()
    for item in items:
        for write in item.writes:
            WRITE_RULES[type(write)].collect(footprint, write)
        for row in item.evidence:
            footprint.add("decision", "id", row.id)
        for put in item.work:
            _collect_work(footprint, put)
        for change in item.trail:
            footprint.add(CHANGE_RECORD.name, "id", change.id)
    return footprint


def judge(cache: RowCache, item: Item) -> Refusal | None:
    """Apply an item if all its writes are valid; else return the reason, and leave the rows unchanged.

    Args:
        cache: the rows, at least those that ``find_footprint`` returns for this item.
        item: its writes are judged in order, each on the result of the earlier ones.

    Returns:
        None if the item is applied.
    """
    refusal = _judge_writes(cache, item.writes) or judge_trees(cache, item.writes)
    if refusal is None:
        for row in item.evidence:
            if cache.decisions.get(row.id) is not None:
                refusal = Refusal("duplicate", "decision", row.id)
                break
            cache.decisions.put(row)
    if refusal is None:
        refusal = _judge_work(cache, item.work)
    if refusal is None:
        refusal = _judge_trail(cache, item.trail)
    if refusal is None:
        cache.accept()
    else:
        cache.undo()
    return refusal


def judge_all(cache: RowCache, items: Iterable[Item]) -> tuple[list[Refusal | None], list[Write]]:
    """Judge items in order; return the refusal of each, None if it is applied, and the writes of the applied ones."""
    refusals: list[Refusal | None] = []
    writes: list[Write] = []
    for item in items:
        refusals.append(judge(cache, item))
        if refusals[-1] is None:
            writes.extend(item.writes)
    return refusals, writes


def _collect_work(footprint: Footprint, put: Put) -> None:
    table = WORK[type(put.row)]
    for columns in (table.key, *(table.uniques if put.expected is None else ())):
        values = tuple(getattr(put.row, column) for column in columns)
        footprint.lookups.setdefault((table.name, columns), set()).add(values)


def _judge_writes(cache: RowCache, writes: Sequence[Write]) -> Refusal | None:
    for write in writes:
        refusal = WRITE_RULES[type(write)].judge(cache, write)
        if refusal is not None:
            return refusal
    return None


def _judge_work(cache: RowCache, puts: Sequence[Put]) -> Refusal | None:
    for put in puts:
        row, table, cached = put.row, WORK[type(put.row)], cache.work[type(put.row)]
        old = cached.get(cached.key_of(row))
        if put.expected is None:
            if old is not None or cached.clashes(row):
                return _refuse_work("duplicate", put, table)
        elif old is None or old.version != put.expected or not cached.has_same_uniques(row, old):
            return _refuse_work("generation", put, table)
        if put.is_change:
            cached.put(row)
    return None


def _judge_trail(cache: RowCache, trail: Sequence[ChangeRow]) -> Refusal | None:
    cached = cache.work[ChangeRow]
    for row in trail:
        if cached.get(row.id) is not None:
            return Refusal("duplicate", CHANGE_RECORD.name, row.id)
        cached.put(row)
    return None


def _refuse_work(kind: str, put: Put, table: Table) -> Refusal:
    key = getattr(put.row, table.key[0])
    text = uuid_text(key) if isinstance(key, bytes) else str(key)
    return Refusal(kind, table.name, key if isinstance(key, int) else 0, f"{table.name} {text}")
