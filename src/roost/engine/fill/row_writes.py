"""Columns as one write for each row, for ``columns.apply`` and for snapshots."""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import TypeAlias

import msgspec

from roost.engine.fill.table_columns import (
    ClaimColumns,
    HostColumns,
    InventoryColumns,
    LabelColumns,
    Part,
    ProviderColumns,
)
from roost.model.writes import (
    CLASS_BITS,
    CLASS_MASK,
    GENERATION_SLOT,
    Claim,
    ConsumerRow,
    InstanceRow,
    InventoryRow,
    Place,
    PutGeneration,
    PutHost,
    PutInventories,
    PutMembership,
    PutProvider,
    PutTraits,
    Write,
)

_Stock: TypeAlias = tuple[int, int, int, int, int, int, float, int]  # a row of ``InventoryColumns``


def writes_of(parts: Iterable[Part]) -> Iterator[Write]:
    """Yield the rows of a database as writes, in a valid order of application.

    ``PutInventories``, ``PutTraits`` and ``PutMembership`` expect generation 0 here; the actual generations follow at
    the end.
    """
    generations: list[PutGeneration] = []
    for kind, some in groupby(parts, key=type):
        if kind is InventoryColumns:
            yield from _inventories(some, generations)
            continue
        for part in some:
            match part:
                case ProviderColumns():
                    yield from (PutProvider(*row) for row in zip(*part, strict=True))
                case LabelColumns():
                    yield from _labels(part)
                case HostColumns():
                    yield from _hosts(part)
                case ClaimColumns():
                    yield _claim(part)
                case InventoryColumns():
                    raise AssertionError("inventories are consecutive parts")
                case _:
                    yield part
    yield from generations


def _inventories(parts: Iterable[Part], generations: list[PutGeneration]) -> Iterator[PutInventories]:
    """Yield the inventories of each provider; add the generations to ``generations``."""
    rows = chain.from_iterable(map(_stocks, parts))
    for provider_id, rows_of_provider in groupby(rows, key=lambda row: row[0] >> CLASS_BITS):
        inventories = []
        for row in rows_of_provider:
            class_id = row[0] & CLASS_MASK
            if class_id == GENERATION_SLOT:
                generations.append(PutGeneration(provider_id, row[7]))
            else:
                inventories.append(InventoryRow(class_id, *row[1:7]))
        if inventories:
            yield PutInventories(provider_id, 0, inventories)


def _stocks(part: Part) -> Iterator[_Stock]:
    assert isinstance(part, InventoryColumns)
    return zip(*(column.tolist() for column in part), strict=True)


def _labels(part: LabelColumns) -> Iterator[PutTraits | PutMembership]:
    pairs = zip(part.provider_ids.tolist(), part.label_ids.tolist(), strict=True)
    put = PutTraits if part.kind == "traits" else PutMembership
    for provider_id, rows in groupby(pairs, key=itemgetter(0)):
        yield put(provider_id, 0, [label for _, label in rows])


def _hosts(part: HostColumns) -> Iterator[PutHost]:
    for host_id, provider_id, host, node, facts, version in zip(*part, strict=True):
        yield PutHost(host_id, provider_id, host, node, msgspec.Raw(facts), version)


def _claim(part: ClaimColumns) -> Claim:
    """Return the claim of some consumers. The limit of a place is 0: the store checked it at the claim."""
    instances = [InstanceRow(*row) for row in zip(*part.instances, strict=True)]
    return Claim(
        [ConsumerRow(*row) for row in zip(*part.consumers, strict=True)],
        [(consumer_id, inventory_id, amount) for consumer_id, inventory_id, amount in zip(*part.takes, strict=True)],
        instances,
        [
            Place(each.group_id, each.scope, each.holder, 1, 0)
            for each, has_place in zip(instances, part.has_place, strict=True)
            if has_place
        ],
    )
