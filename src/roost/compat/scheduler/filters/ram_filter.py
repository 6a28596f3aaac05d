"""Filters of hosts with enough free memory; today Placement's inventories serve this purpose."""

from typing import Any

from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import HookedFilter
from roost.scheduler.rule_support.overcommit import MemoryAmounts


class BaseRamFilter(HookedFilter):
    """Keep hosts with enough memory left, overcommit included."""

    judge_class = MemoryAmounts
    hook = "_get_ram_allocation_ratio"

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        """Return the overcommit of a host; override this."""
        raise NotImplementedError


class RamFilter(BaseRamFilter):
    """The same overcommit for all hosts."""

    rule_name = "ram"
    ram_allocation_ratio = 1.5

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return self.ram_allocation_ratio


class AggregateRamFilter(RamFilter):
    """An overcommit set by aggregates."""

    rule_name = "aggregate_ram"

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return number_from(host_state, "ram_allocation_ratio", default=self.ram_allocation_ratio, cast_to=float)
