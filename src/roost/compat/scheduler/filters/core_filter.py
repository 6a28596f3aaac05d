"""Nova's former filters by free virtual CPUs, now superseded by Placement's inventories."""

from typing import Any

from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import HookedFilter
from roost.scheduler.rule_support.overcommit import CoreAmounts


class BaseCoreFilter(HookedFilter):
    """Keep hosts with enough virtual CPUs left, overcommit included."""

    judge_class = CoreAmounts
    hook = "_get_cpu_allocation_ratio"

    def _get_cpu_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        """Return the overcommit of a host; override this."""
        raise NotImplementedError


class CoreFilter(BaseCoreFilter):
    """Allow the same overcommit on all hosts."""

    rule_name = "core"
    cpu_allocation_ratio = 16.0

    def _get_cpu_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return self.cpu_allocation_ratio


class AggregateCoreFilter(CoreFilter):
    """Read the overcommit from the metadata of aggregates."""

    rule_name = "aggregate_core"

    def _get_cpu_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return number_from(host_state, "cpu_allocation_ratio", default=self.cpu_allocation_ratio, cast_to=float)
