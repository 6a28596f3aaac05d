"""Inventories and free amounts of all providers for one resource class, in columns."""

import numpy as np

from roost.engine.columns.column import Column, RowSet
from roost.engine.columns.types import NO_INVENTORY, Amounts, Mask, Rows, Scores
from roost.model.names import AMOUNT_MAX
from roost.model.writes import InventoryRow

_CAPACITY_MAX = 2.0**61  # far above the sum of all amounts, far from overflow


def fits(*, total: Amounts, reserved: Amounts, ratio: Scores, used: Amounts, amount: int) -> Mask:
    """Return which inventories can take ``amount`` more, ignoring unit bounds.

    Args:
        total: int64, shape (inventories,), in the unit of the resource class.
        reserved: int64, shape (inventories,), same unit, 0 <= reserved <= total.
        ratio: float64, shape (inventories,), overcommit, ratio >= 0.
        used: int64, shape (inventories,), same unit.
        amount: same unit, amount >= 1.

    Returns:
        bool, shape (inventories,).

    Source:
        placement/objects/research_context.py, _capacity_check_clause.

    >>> one = np.array([1.0])
    >>> fits(total=np.array([8]), reserved=np.array([0]), ratio=one * 2, used=np.array([15]), amount=1)
    array([ True])
    """
    assert amount >= 1, amount
    roomy: Mask = used + amount <= (total - reserved) * ratio
    return roomy


def capacity_of(inventory: InventoryRow) -> int:
    """Return the capacity of an inventory, in the unit of its class."""
    # A ratio may be as large as the largest 32-bit float; cap capacities far beyond any possible use.
    return int(min((inventory.total - inventory.reserved) * inventory.allocation_ratio, _CAPACITY_MAX))


class ClassColumns:
    """One resource class over all provider rows.

    ``free`` is capacity less use, ``NO_INVENTORY`` without an inventory, and below 0 where a capacity shrank under
    its use. Amounts are integers, so ``amount <= free`` equals ``fits``.
    """

    __slots__ = (
        "_units",
        "capacity",
        "free",
        "holders",
        "max_unit",
        "min_unit",
        "plain_units",
        "ratio",
        "reserved",
        "step_size",
        "total",
        "used",
    )

    def __init__(self, rows: int) -> None:
        self.total = Column(np.int64, rows=rows)  # 0: no inventory
        self.reserved = Column(np.int64, rows=rows)
        self.min_unit = Column(np.int64, fill=1, rows=rows)
        self.max_unit = Column(np.int64, fill=AMOUNT_MAX, rows=rows)
        self.step_size = Column(np.int64, fill=1, rows=rows)
        self.ratio = Column(np.float64, fill=1.0, rows=rows)
        self.capacity = Column(np.int64, rows=rows)
        self.used = Column(np.int64, rows=rows)
        self.free = Column(np.int64, fill=NO_INVENTORY, rows=rows)
        self.holders = RowSet(rows)  # rows with an inventory of this class
        self.plain_units = True  # unit bounds allow every amount up to the capacity
        self._units: dict[int, Mask] = {}

    def grow(self, rows: int) -> None:
        """Grow to ``rows`` rows."""
        for column in self._columns():
            column.grow(rows)
        self.holders.grow(rows)
        self._units.clear()

    def _columns(self) -> tuple[Column, ...]:
        return (
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.ratio,
            self.capacity,
            self.used,
            self.free,
        )

    def put(self, row: int, inventory: InventoryRow) -> None:
        """Set the inventory of one provider; its use stays."""
        capacity = capacity_of(inventory)
        self.total.each[row] = inventory.total
        self.reserved.each[row] = inventory.reserved
        self.min_unit.each[row] = inventory.min_unit
        self.max_unit.each[row] = inventory.max_unit
        self.step_size.each[row] = inventory.step_size
        self.ratio.each[row] = inventory.allocation_ratio
        self.capacity.each[row] = capacity
        self.free.each[row] = capacity - int(self.used.each[row])
        self.holders.add(row)
        if inventory.min_unit > 1 or inventory.step_size > 1 or inventory.max_unit < capacity:
            self.plain_units = False
        self._units.clear()

    def fill(
        self,
        rows: Rows,
        *,
        total: Amounts,
        reserved: Amounts,
        units: tuple[Amounts, Amounts, Amounts],
        ratio: Scores,
    ) -> None:
        """Set the inventories of providers without use; all arrays have the shape (rows,).

        Args:
            rows: the providers, each once.
            total, reserved, units, ratio: as in ``InventoryRow``; ``units`` are min_unit, max_unit and step_size.
        """
        min_unit, max_unit, step_size = units
        capacity = np.minimum((total - reserved) * ratio, _CAPACITY_MAX).astype(np.int64)
        self.total.data[rows] = total
        self.reserved.data[rows] = reserved
        self.min_unit.data[rows] = min_unit
        self.max_unit.data[rows] = max_unit
        self.step_size.data[rows] = step_size
        self.ratio.data[rows] = ratio
        self.capacity.data[rows] = capacity
        self.free.data[rows] = capacity
        self.holders.update(rows)
        if ((min_unit > 1) | (step_size > 1) | (max_unit < capacity)).any():
            self.plain_units = False
        self._units.clear()

    def drop(self, row: int) -> None:
        """Remove the inventory of one provider; its use stays."""
        self.total.each[row] = 0
        self.reserved.each[row] = 0
        self.capacity.each[row] = 0
        self.free.each[row] = NO_INVENTORY
        self.holders.discard(row)
        self._units.clear()

    def unit_mask(self, amount: int) -> Mask:
        """Return which providers allow an allocation of ``amount`` by their unit bounds, regardless of use.

        Returns:
            bool, shape (providers,); cached until an inventory of the class changes.
        """
        mask = self._units.get(amount)
        if mask is None:
            if len(self._units) > 256:
                self._units.clear()
            allowed: Mask = (self.min_unit.view <= amount) & (amount <= self.max_unit.view)
            mask = allowed & (amount % self.step_size.view == 0)
            mask.flags.writeable = False
            self._units[amount] = mask
        return mask

    def fit_mask(self, amount: int) -> Mask:
        """Return which providers can take ``amount`` more now, including unit bounds.

        Returns:
            bool, shape (providers,).
        """
        roomy: Mask = self.free.view >= amount
        return roomy if self.plain_units else roomy & self.unit_mask(amount)

    def can_take(self, row: int, amount: int) -> bool:
        """Return whether one provider can take ``amount`` more now, including unit bounds."""
        if self.free.each[row] < amount:
            return False
        return self.plain_units or bool(self.unit_mask(amount)[row])

    def fork(self) -> "ClassColumns":
        """Return an independent copy."""
        copy = ClassColumns.__new__(ClassColumns)
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, Column):
                setattr(copy, name, value.fork())
        copy.holders = self.holders.fork()
        copy.plain_units = self.plain_units
        copy._units = dict(self._units)  # noqa: SLF001  # it is the same class
        return copy
