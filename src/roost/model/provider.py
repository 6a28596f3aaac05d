"""Providers and their inventories."""

import math
from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.names import AMOUNT_MAX, RATIO_MAX


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The inventory of one resource class on one provider."""

    total: Annotated[int, Meta(description=f"Total amount, in the unit of the class, 1..{AMOUNT_MAX}.")]
    reserved: Annotated[int, Meta(description="Amount of the total that is not available, same unit, 0..total.")] = 0
    min_unit: Annotated[int, Meta(description="Least amount of one allocation.")] = 1
    max_unit: Annotated[int, Meta(description="Largest amount of one allocation.")] = AMOUNT_MAX
    step_size: Annotated[int, Meta(description="Each allocation is a multiple of this.")] = 1
    allocation_ratio: Annotated[float, Meta(description="Overcommit, >= 0.")] = 1.0

    def __post_init__(self) -> None:
        for name in ("total", "reserved", "min_unit", "max_unit", "step_size"):
            # A stored fraction could not be decoded again.
            if not isinstance(getattr(self, name), int):
                raise ValueError(f"{name} must be a whole number, got {getattr(self, name)!r}")  # noqa: TRY004  # each invalid value raises ValueError
        if not 1 <= self.total <= AMOUNT_MAX:
            raise ValueError(f"total must be 1..{AMOUNT_MAX}, got {self.total}")
        if not 0 <= self.reserved <= self.total:
            raise ValueError(f"reserved must be 0..{self.total}, got {self.reserved}")
        for name in ("min_unit", "max_unit", "step_size"):
            if not 1 <= getattr(self, name) <= AMOUNT_MAX:
                raise ValueError(f"{name} must be 1..{AMOUNT_MAX}, got {getattr(self, name)}")
        if not (0 <= self.allocation_ratio <= RATIO_MAX) or math.isnan(self.allocation_ratio):
            raise ValueError(f"allocation_ratio must be 0..{RATIO_MAX}, got {self.allocation_ratio}")

    @property
    def capacity(self) -> int:
        """The upper bound of all allocations together, in the unit of the class."""
        return int((self.total - self.reserved) * self.allocation_ratio)


class ProviderSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A provider to create. Providers form trees; a root is usually a host."""

    uuid: str
    name: str
    parent_uuid: str | None = None
    inventories: dict[str, Inventory] = {}
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()  # uuids
