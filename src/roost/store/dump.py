"""A whole database as writes, in a valid order of application."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from roost.model.work.operation import IO_TASKS
from roost.model.writes import (
    CLASS_BITS,
    CLASS_MASK,
    GENERATION_SLOT,
    Claim,
    ConsumerRow,
    DropSymbol,
    InstanceRow,
    InventoryRow,
    Place,
    PutDocument,
    PutGeneration,
    PutGroup,
    PutInventories,
    PutMembership,
    PutProvider,
    PutSymbol,
    PutTask,
    PutTraits,
    Write,
)
from roost.store.rules.codec import aggregate_of, host_of
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

_CONSUMERS_PER_CLAIM = 500
_FIRST = itemgetter(0)

# Returns the rows of a table in the order of its key, each with its columns in the order of the table.
Scan = Callable[[Table], Iterable[tuple[Any, ...]]]


def writes_of(scan: Scan) -> Iterator[Write]:
    """Yield the content of all tables.

    ``PutInventories``, ``PutTraits`` and ``PutMembership`` expect generation 0 here; the actual generations follow at
    the end. The limit of a place is 0: the store checked the actual limit at the claim.
    """
    yield from (symbol_of(row) for row in scan(SYMBOL))
    yield from (PutDocument(*row) for row in scan(DOCUMENT))
    yield from (aggregate_of(row) for row in scan(AGGREGATE))
    yield from _providers(scan(PROVIDER))
    generations: list[tuple[int, int]] = []
    yield from _inventories(scan(INVENTORY), generations)
    for provider_id, rows in groupby(scan(PROVIDER_TRAIT), key=_FIRST):
        yield PutTraits(provider_id, 0, [row[1] for row in rows])
    for provider_id, rows in groupby(scan(PROVIDER_AGGREGATE), key=_FIRST):
        yield PutMembership(provider_id, 0, [row[1] for row in rows])
    yield from (host_of(row) for row in scan(HOST))
    yield from (PutGroup(*row) for row in scan(SERVER_GROUP))
    yield from _claims(scan)
    yield from (PutTask(uuid, is_io=True) for uuid, task in scan(TASK) if task in IO_TASKS)
    yield from (PutGeneration(provider_id, generation) for provider_id, generation in generations)


def symbol_of(row: tuple[Any, ...]) -> PutSymbol | DropSymbol:
    """Return the write for a symbol's row: its name, or the deletion of its name; see ``tombstone_of``."""
    symbol = PutSymbol(*row)
    if not symbol.kind.startswith(DROPPED):
        return symbol
    since = symbol.name.partition(" ")[2]
    return DropSymbol(symbol.kind.removeprefix(DROPPED), symbol.id, float(since or 0))


def _providers(rows: Iterable[tuple[Any, ...]]) -> Iterator[PutProvider]:
    """Yield providers in row order.

    A provider with a younger parent appears twice: first as a root, and at the end with its parent.
    """
    moved: list[PutProvider] = []
    for row in rows:
        provider = PutProvider(*row)
        if provider.parent_id is not None and provider.parent_id > provider.id:
            moved.append(provider)
            provider = msgspec.structs.replace(provider, parent_id=None, root_id=provider.id)
        yield provider
    yield from moved


def _inventories(rows: Iterable[tuple[Any, ...]], generations: list[tuple[int, int]]) -> Iterator[PutInventories]:
    """Yield the inventories of each provider; add the generations to ``generations``."""
    for provider_id, rows_of_provider in groupby(rows, key=lambda row: row[0] >> CLASS_BITS):
        inventories = []
        for row in rows_of_provider:
            class_id = row[0] & CLASS_MASK
            if class_id == GENERATION_SLOT:
                generations.append((provider_id, row[7]))
            else:
                inventories.append(InventoryRow(class_id, *row[1:7]))
        if inventories:
            yield PutInventories(provider_id, 0, inventories)


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
