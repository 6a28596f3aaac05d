"""Filters of hosts with enough free disk; today Placement's inventories serve this purpose."""

from typing import Any

from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import HookedFilter
from roost.scheduler.rule_support.overcommit import DiskAmounts


class BaseDiskFilter(HookedFilter):
    """Keep hosts with enough disk left, overcommit included."""

    judge_class = DiskAmounts
    hook = "_get_disk_allocation_ratio"

    def _get_disk_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        """Return the overcommit of a host; override this."""
        raise NotImplementedError


class DiskFilter(BaseDiskFilter):
    """The same overcommit for all hosts."""

    rule_name = "disk"
    disk_allocation_ratio = 1.0

    def _get_disk_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return self.disk_allocation_ratio


class AggregateDiskFilter(DiskFilter):
    """An overcommit set by aggregates."""

    rule_name = "aggregate_disk"

    def _get_disk_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return number_from(host_state, "disk_allocation_ratio", default=self.disk_allocation_ratio, cast_to=float)
