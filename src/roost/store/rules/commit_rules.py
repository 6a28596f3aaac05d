"""The verdict on one item in plain Python: the reference for the statements of every store."""

from collections.abc import Iterable, Sequence

from roost.model.names import uuid_text
from roost.model.work.work_rows import Put
from roost.model.writes import Item, Refusal, Write
from roost.store.rules.footprint import Touched
from roost.store.rules.row_cache import Shelves
from roost.store.rules.schema import WORK, Table
from roost.store.rules.writes import WRITE_RULES
from roost.store.rules.writes.providers import judge_trees


def committable(items: Sequence[Item]) -> bool:
    """Return whether all writes are of kinds that can be committed."""
    return all(type(write) in WRITE_RULES for item in items for write in item.writes)


def find_touched(items: Iterable[Item]) -> Touched:
    """Return the rows that ``judge`` needs for these items."""
    touched = Touched()
    for item in items:
        for write in item.writes:
            WRITE_RULES[type(write)].touch(touched, write)
        for row in item.evidence:
            touched.look("decision", "id", row.id)
        for put in item.work:
            _put_work(touched, put)
    return touched


def judge(shelves: Shelves, item: Item) -> Refusal | None:
    """Apply an item if every write of it is valid; else return the reason, and leave the rows unchanged.

    Args:
        shelves: the rows, at least those that ``find_touched`` returns for this item.
        item: judged write by write, each after the effect of those before.

    Returns:
        None if the item is applied.
    """
    refusal = _judge_writes(shelves, item.writes) or judge_trees(shelves, item.writes)
    if refusal is None:
        for row in item.evidence:
            if shelves.decisions.get(row.id) is not None:
                refusal = Refusal("duplicate", "decision", row.id)
                break
            shelves.decisions.put(row)
    if refusal is None:
        refusal = _judge_work(shelves, item.work)
    if refusal is None:
        shelves.keep()
    else:
        shelves.undo()
    return refusal


def _put_work(touched: Touched, put: Put) -> None:
    table = WORK[type(put.row)]
    for columns in (table.key, *(table.uniques if put.expected is None else ())):
        values = tuple(getattr(put.row, column) for column in columns)
        touched.lookups.setdefault((table.name, columns), set()).add(values)


def _judge_writes(shelves: Shelves, writes: Sequence[Write]) -> Refusal | None:
    for write in writes:
        refusal = WRITE_RULES[type(write)].judge(shelves, write)
        if refusal is not None:
            return refusal
    return None


def _judge_work(shelves: Shelves, puts: Sequence[Put]) -> Refusal | None:
    for put in puts:
        row, table, shelf = put.row, WORK[type(put.row)], shelves.work[type(put.row)]
        old = shelf.get(shelf.key_of(row))
        if put.expected is None:
            if old is not None or shelf.clashes(row):
                return _of_work("duplicate", put, table)
        elif old is None or old.version != put.expected or not shelf.is_known_as(row, old):
            return _of_work("generation", put, table)
        if put.is_change:
            shelf.put(row)
    return None


def _of_work(kind: str, put: Put, table: Table) -> Refusal:
    key = getattr(put.row, table.key[0])
    text = uuid_text(key) if isinstance(key, bytes) else str(key)
    return Refusal(kind, table.name, key if isinstance(key, int) else 0, f"{table.name} {text}")
