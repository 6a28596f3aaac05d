"""Checks of explicit claims against the columns: a quick verdict ahead of the commit's final one.

Decisions need no such check, since the search yields only claimable candidates. Tests apply it to every candidate.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from roost.engine.candidates.walk import Take
from roost.engine.columns.inventory_columns import capacity_of
from roost.engine.columns.state import State
from roost.model.writes import InventoryRow

InventoryOverrides = Mapping[tuple[int, int], InventoryRow]  # by provider row and resource class id


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRefusal:
    """The first provider and class that refuses a claim."""

    reason: Literal["missing", "units", "capacity"]  # no inventory; unit bounds; too little free
    row: int  # of the provider
    class_id: int
    amount: int  # requested, in the unit of the class


def check_claim(
    state: State,
    takes: Iterable[Take],
    *,
    frees: Iterable[Take] = (),
    overrides: InventoryOverrides | None = None,
) -> ClaimRefusal | None:
    """Check the amounts of a claim, one by one and in total.

    Freed amounts are subtracted first. A use above the capacity may stay or shrink, but not grow.

    Args:
        takes: provider row, class, amount >= 1; each provider and class once per consumer.
        frees: in the same form, the current allocations of the consumers.
        overrides: inventories that replace those in the columns before the claim.

    Returns:
        None if the claim fits, else the first refusal, in the order of ``takes``.
    """
    grown: dict[tuple[int, int], int] = {}
    for row, class_id, amount in frees:
        grown[row, class_id] = grown.get((row, class_id), 0) - amount
    reason: Literal["missing", "units", "capacity"]
    for row, class_id, amount in takes:
        growth = grown[row, class_id] = grown.get((row, class_id), 0) + amount
        bounds = _bounds(state, (row, class_id), overrides)
        if bounds is None:
            reason = "missing"
        elif not bounds[1] <= amount <= bounds[2] or amount % bounds[3]:
            reason = "units"
        elif bounds[0] < growth and growth > 0:
            reason = "capacity"
        else:
            continue
        return ClaimRefusal(reason=reason, row=row, class_id=class_id, amount=amount)
    return None


def has_inventory(state: State, row: int, class_id: int, *, overrides: InventoryOverrides | None = None) -> bool:
    """Return whether a provider has an inventory of a class, given ``overrides``."""
    return _bounds(state, (row, class_id), overrides) is not None


def _bounds(
    state: State, key: tuple[int, int], overrides: InventoryOverrides | None
) -> tuple[int, int, int, int] | None:
    """Return the free amount and the unit bounds (min, max, step); None: no inventory."""
    row, class_id = key
    columns = state.classes.get(class_id)
    if overrides:
        inventory = overrides.get(key)
        if inventory is not None:
            used = 0 if columns is None else columns.used.each[row]
            return capacity_of(inventory) - used, inventory.min_unit, inventory.max_unit, inventory.step_size
    if columns is None or row not in columns.holders:
        return None
    return columns.free.each[row], columns.min_unit.each[row], columns.max_unit.each[row], columns.step_size.each[row]
