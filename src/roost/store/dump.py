"""A whole database as columns or as writes, in a valid order of application."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from roost.engine.columns.types import AnyArray
from roost.engine.fill import row_writes
from roost.engine.fill.table_columns import (
    HostColumns,
    InventoryColumns,
    LabelColumns,
    LabelKind,
    Part,
    ProviderColumns,
)
from roost.model.work.operation import IO_TASKS
from roost.model.writes import (
    Claim,
    ConsumerRow,
    DropSymbol,
    InstanceRow,
    Place,
    PutDocument,
    PutGroup,
    PutProvider,
    PutSymbol,
    PutTask,
    Write,
)
from roost.store.rules.codec import aggregate_of
from roost.store.rules.schema import (
    AGGREGATE,
    ALLOCATION,
    CONSUMER,
    DOCUMENT,
    HOST,
    INSTANCE,
    INVENTORY,
    PLACE,
    PROVIDER,
    PROVIDER_AGGREGATE,
    PROVIDER_TRAIT,
    SERVER_GROUP,
    SYMBOL,
    TASK,
    Table,
)
from roost.store.rules.writes.symbols import DROPPED

# Rows as tuples at once: below the 700 new objects that start the garbage collector.
_ROWS_MAX = 500
# Batches of inventories in one part: arrays of some thousand rows are fast and small.
_BATCHES_PER_PART = 20
_CONSUMERS_PER_CLAIM = 500
_INVENTORY_KINDS = tuple("f" if kind == "float8" else "i" for kind in INVENTORY.types)

# Returns the rows of a table in the order of its key, each with its columns in the order of the table.
Scan = Callable[[Table], Iterable[tuple[Any, ...]]]


def parts_of(scan: Scan) -> Iterator[Part]:
    """Yield the content of all tables, in a valid order of application.

    The limit of a place is 0: the store checked the actual limit at the claim.
    """
    yield from (symbol_of(row) for row in scan(SYMBOL))
    yield from (PutDocument(*row) for row in scan(DOCUMENT))
    yield from (aggregate_of(row) for row in scan(AGGREGATE))
    yield from _providers(scan)
    yield from _inventories(scan)
    yield from _labels(scan, PROVIDER_TRAIT, "traits")
    yield from _labels(scan, PROVIDER_AGGREGATE, "membership")
    for columns in _batches(scan(HOST)):
        yield HostColumns(*columns)
    yield from (PutGroup(*row) for row in scan(SERVER_GROUP))
    yield from _claims(scan)
    yield from (PutTask(uuid, is_io=True) for uuid, task in scan(TASK) if task in IO_TASKS)


def writes_of(scan: Scan) -> Iterator[Write]:
    """Yield the content of all tables as one write for each row."""
    return row_writes.writes_of(parts_of(scan))


def symbol_of(row: tuple[Any, ...]) -> PutSymbol | DropSymbol:
    """Return the write for a symbol's row: its name, or the deletion of its name; see ``tombstone_of``."""
    symbol = PutSymbol(*row)
    if not symbol.kind.startswith(DROPPED):
        return symbol
    since = symbol.name.partition(" ")[2]
    return DropSymbol(symbol.kind.removeprefix(DROPPED), symbol.id, float(since or 0))


def _batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Sequence[Any], ...]]:
    """Yield the columns of some rows at once."""
    iterator = iter(rows)
    while batch := list(islice(iterator, _ROWS_MAX)):
        yield tuple(zip(*batch, strict=True))


def _column(values: Sequence[Any], kind: str) -> AnyArray:
    """Return a column of numbers.

    Args:
        kind: ``i`` for whole numbers, ``f`` for real ones.

    Raises:
        ValueError: a value is of another kind.
    """
    column = np.array(values)
    if column.dtype.kind != kind:
        raise ValueError(f"a column has values of type {column.dtype}")
    return column


def _providers(scan: Scan) -> Iterator[ProviderColumns | PutProvider]:
    """Yield providers in row order.

    A provider with a younger parent comes twice: first as a root, and at the end with its parent.
    """
    moved: list[PutProvider] = []
    for ids, uuids, names, parent_ids, root_ids, versions in _batches(scan(PROVIDER)):
        parents, roots = list(parent_ids), list(root_ids)
        for at, (provider_id, parent_id) in enumerate(zip(ids, parent_ids, strict=True)):
            if parent_id is not None and parent_id > provider_id:
                moved.append(PutProvider(provider_id, uuids[at], names[at], parent_id, root_ids[at], versions[at]))
                parents[at], roots[at] = None, provider_id
        yield ProviderColumns(ids, uuids, names, parents, roots, versions)
    yield from moved


def _inventories(scan: Scan) -> Iterator[InventoryColumns]:
    batches = (tuple(map(_column, columns, _INVENTORY_KINDS)) for columns in _batches(scan(INVENTORY)))
    while some := list(islice(batches, _BATCHES_PER_PART)):
        yield InventoryColumns(*map(np.concatenate, zip(*some, strict=True)))


def _labels(scan: Scan, table: Table, kind: LabelKind) -> Iterator[LabelColumns]:
    batches = [(_column(providers, "i"), _column(labels, "i")) for providers, labels in _batches(scan(table))]
    if batches:
        yield LabelColumns(kind, *map(np.concatenate, zip(*batches, strict=True)))


def _claims(scan: Scan) -> Iterator[Claim]:
    """Yield all claims; read consumers, allocations and instances side by side, in the order of consumers."""
    occupied = {(row[0], row[1]) for row in scan(PLACE) if row[3] > 0}
    takes, instances = _RowsByConsumer(scan(ALLOCATION)), _RowsByConsumer(scan(INSTANCE))
    claim = Claim([], [], [], [])
    for row in scan(CONSUMER):
        claim.consumers.append(ConsumerRow(*row))
        claim.takes.extend(takes.of(row[0]))
        for values in instances.of(row[0]):
            instance = InstanceRow(*values)
            claim.instances.append(instance)
            if (instance.group_id, instance.scope) in occupied:
                claim.places.append(Place(instance.group_id, instance.scope, instance.holder, 1, 0))
        if len(claim.consumers) == _CONSUMERS_PER_CLAIM:
            yield claim
            claim = Claim([], [], [], [])
    if claim.consumers:
        yield claim


class _RowsByConsumer:
    """Rows of a table in the order of consumers, read consumer by consumer."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def of(self, consumer_id: int) -> list[tuple[Any, ...]]:
        """Return the rows of one consumer; rows of missing consumers are skipped."""
        own = []
        while self._next is not None and self._next[0] <= consumer_id:
            if self._next[0] == consumer_id:
                own.append(self._next)
            self._next = next(self._rows, None)
        return own
