"""Nova's former filters by free disk, now superseded by Placement's inventories."""

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
    """Allow the same overcommit on all hosts."""

    rule_name = "disk"
    disk_allocation_ratio = 1.0

    def _get_disk_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return self.disk_allocation_ratio


class AggregateDiskFilter(DiskFilter):
    """Read the overcommit from the metadata of aggregates."""

    rule_name = "aggregate_disk"

    def _get_disk_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return number_from(host_state, "disk_allocation_ratio", default=self.disk_allocation_ratio, cast_to=float)
