"""A whole database as columns or as writes, in a valid order of application."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, islice
from typing import Any

import numpy as np

from roost.engine.columns.types import AnyArray
from roost.engine.fill import row_writes
from roost.engine.fill.table_columns import (
    ClaimColumns,
    HostColumns,
    InventoryColumns,
    LabelColumns,
    LabelKind,
    Part,
    ProviderColumns,
)
from roost.model.work.operation import IO_TASKS
from roost.model.writes import (
    DropSymbol,
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


def _claims(scan: Scan) -> Iterator[ClaimColumns]:
    """Yield all claims; read consumers, allocations and instances side by side, in the order of consumers."""
    occupied = {(row[0], row[1]) for row in scan(PLACE) if row[3] > 0}
    takes, instances = _ColumnsByConsumer(scan, ALLOCATION), _ColumnsByConsumer(scan, INSTANCE)
    for consumers in _batches(scan(CONSUMER)):
        own = instances.of(consumers[0])
        _, _, _, _, group_ids, scopes, _ = own
        has_place = [key in occupied for key in zip(group_ids, scopes, strict=True)]
        yield ClaimColumns(consumers, takes.of(consumers[0]), own, has_place)


class _ColumnsByConsumer:
    """Columns of a table in the order of consumers, read for some consumers at a time."""

    def __init__(self, scan: Scan, table: Table) -> None:
        self._batches = _batches(scan(table))
        self._nothing: tuple[Sequence[Any], ...] = tuple(() for _ in table.columns)
        self._next = next(self._batches, self._nothing)

    def of(self, consumer_ids: Sequence[int]) -> tuple[Sequence[Any], ...]:
        """Return the rows of the next consumers; rows of missing consumers are skipped."""
        last, found = consumer_ids[-1], [self._nothing]
        while self._next[0] and self._next[0][-1] <= last:
            found.append(self._next)
            self._next = next(self._batches, self._nothing)
        end = bisect_right(self._next[0], last)
        found.append(tuple(column[:end] for column in self._next))
        self._next = tuple(column[end:] for column in self._next)
        columns = tuple(tuple(chain.from_iterable(parts)) for parts in zip(*found, strict=True))
        present = set(consumer_ids)
        if present.issuperset(columns[0]):
            return columns
        is_own = [consumer_id in present for consumer_id in columns[0]]
        return tuple(tuple(compress(column, is_own)) for column in columns)
