"""Whether amounts can be taken, judged from the columns: the quick verdict before a commit gives the true one.

Decisions need none, since the search gives only what can be taken; tests hold every candidate to this rule. It is
for claims that name their amounts themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from roost.engine.candidates import Take
from roost.engine.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class NotClaimable:
    """The first provider and class that cannot give what is asked."""

    reason: Literal["missing", "units", "capacity"]  # no inventory; unit bounds; not enough left
    row: int  # of the provider
    class_id: int
    amount: int  # asked of it in all, in the unit of the class


def claimable(state: State, takes: Iterable[Take], *, frees: Iterable[Take] = ()) -> NotClaimable | None:
    """Say whether one consumer can take amounts, summed by provider and class.

    What it frees is given back first. Where use is above capacity already, it may stay or shrink. Sums of
    amounts that keep the least unit and the step keep them too, so a candidate is never refused for these.

    Args:
        takes: provider row, class, amount >= 1; the same provider and class may come several times.
        frees: the same, of what the consumer holds until now.

    Returns:
        nothing if all of it can be taken, else the first that cannot, in the order of ``takes``.

    Source:
        placement/objects/allocation.py, _check_capacity_exceeded.
    """
    sums = _sums(takes)
    freed = _sums(frees)
    for (row, class_id), amount in sums.items():
        columns = state.inventory(class_id)
        if row not in columns.holders:
            reason: Literal["missing", "units", "capacity"] = "missing"
        elif not _is_allowed(state, row, class_id=class_id, amount=amount):
            reason = "units"
        elif columns.free.each[row] < (growth := amount - freed.get((row, class_id), 0)) and growth > 0:
            reason = "capacity"
        else:
            continue
        return NotClaimable(reason=reason, row=row, class_id=class_id, amount=amount)
    return None


def _sums(takes: Iterable[Take]) -> dict[tuple[int, int], int]:
    sums: dict[tuple[int, int], int] = {}
    for row, class_id, amount in takes:
        sums[row, class_id] = sums.get((row, class_id), 0) + amount
    return sums


def _is_allowed(state: State, row: int, *, class_id: int, amount: int) -> bool:
    columns = state.inventory(class_id)
    least, most, step = (column.each[row] for column in (columns.min_unit, columns.max_unit, columns.step_size))
    return bool(least <= amount <= most and amount % step == 0)
