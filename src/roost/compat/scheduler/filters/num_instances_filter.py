"""Filters by the number of instances on a host."""

from typing import Any

from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import HookedFilter
from roost.scheduler.rule_support.limits import InstanceLimit


class NumInstancesFilter(HookedFilter):
    """Keep hosts with fewer instances than the limit."""

    rule_name = "num_instances"
    judge_class = InstanceLimit
    hook = "_get_max_instances_per_host"
    max_instances_per_host = 50

    def _get_max_instances_per_host(self, host_state: Any, spec_obj: Any) -> int:
        """Return the limit of a host; override this to set another limit."""
        return self.max_instances_per_host


class AggregateNumInstancesFilter(NumInstancesFilter):
    """Read the limit from the metadata of aggregates."""

    rule_name = "aggregate_num_instances"

    def _get_max_instances_per_host(self, host_state: Any, spec_obj: Any) -> int:
        return number_from(host_state, "max_instances_per_host", default=self.max_instances_per_host, cast_to=int)
