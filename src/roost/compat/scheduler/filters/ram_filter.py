"""Nova's former filters by free memory, now superseded by Placement's inventories."""

from typing import Any

from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import HookedFilter
from roost.scheduler.rule_support.overcommit import MemoryAmounts


class BaseRamFilter(HookedFilter):
    """Keep hosts with enough memory left, overcommit included."""

    judge_class = MemoryAmounts
    hook = "_get_ram_allocation_ratio"

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        """Return the overcommit ratio of a host; override this."""
        raise NotImplementedError


class RamFilter(BaseRamFilter):
    """Allow the same overcommit on all hosts."""

    rule_name = "ram"
    ram_allocation_ratio = 1.5

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return self.ram_allocation_ratio


class AggregateRamFilter(RamFilter):
    """Read the overcommit from the metadata of aggregates."""

    rule_name = "aggregate_ram"

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return number_from(host_state, "ram_allocation_ratio", default=self.ram_allocation_ratio, cast_to=float)
