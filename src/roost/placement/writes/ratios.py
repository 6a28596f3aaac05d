"""Allocation ratios of host trees: their writes."""

from collections.abc import Mapping, Sequence

import msgspec

from roost.engine.columns.state import State
from roost.model.writes import InventoryRow, PutInventories, Write
from roost.placement.writes.inventories import rows_of


class RatioChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of the inventories of one class in a tree."""

    ratio_before: float | None  # None: the providers of the tree have different ratios
    ratio: float
    capacity_before: int  # in the unit of the class
    capacity: int
    used: int


def plan_ratios(
    state: State, rows: Sequence[int], ratios: Mapping[str, float]
) -> tuple[dict[str, RatioChange], tuple[Write, ...]]:
    """Plan new allocation ratios in a tree; a ratio may leave a capacity below its use, as in Placement.

    Args:
        rows: the providers of the tree.
        ratios: new ratio by resource class.

    Returns:
        The change of each class that the tree offers, and the writes; without writes, nothing changes.
    """
    changes = {}
    for name, ratio in ratios.items():
        change = _change(state, rows, name, ratio=ratio)
        if change is not None:
            changes[name] = change
    ids = {state.class_ids.id_of(name): ratio for name, ratio in ratios.items()}
    writes = []
    for row in rows:
        old = rows_of(state, row) if any(_offers(state, class_id, row) for class_id in ids) else []
        new = [_with_ratio(each, ids.get(each.class_id, each.allocation_ratio)) for each in old]
        if new != old:
            providers = state.providers
            writes.append(PutInventories(providers.ids[row], providers.generation.each[row], new))
    return changes, tuple(writes)


def _change(state: State, rows: Sequence[int], name: str, *, ratio: float) -> RatioChange | None:
    """Return the change of a class; None: no provider of the tree offers it."""
    class_id = state.class_ids.id_of(name)
    offering = [row for row in rows if _offers(state, class_id, row)]
    if class_id is None or not offering:
        return None
    columns = state.classes[class_id]
    before = {float(columns.ratio.each[row]) for row in offering}
    return RatioChange(
        ratio_before=before.pop() if len(before) == 1 else None,
        ratio=ratio,
        capacity_before=sum(int(columns.capacity.each[row]) for row in offering),
        capacity=sum(int((columns.total.each[row] - columns.reserved.each[row]) * ratio) for row in offering),
        used=sum(int(columns.used.each[row]) for row in offering),
    )


def _offers(state: State, class_id: int | None, row: int) -> bool:
    return class_id is not None and class_id in state.classes and row in state.classes[class_id].holders


def _with_ratio(inventory: InventoryRow, ratio: float) -> InventoryRow:
    return msgspec.structs.replace(inventory, allocation_ratio=ratio)
