"""aggregate_num_instances: hosts with few instances, by limits that aggregates set."""

from typing import ClassVar

from roost.engine.types import Scores
from roost.scheduler.aggregates import least, unread
from roost.scheduler.filters.num_instances import NumInstances
from roost.scheduler.hosts import HostView
from roost.scheduler.spec import Spec

_KEY = "max_instances_per_host"


class AggregateNumInstances(NumInstances):
    """Keep hosts with fewer instances than the least limit of their aggregates, or else of the settings.

    Source:
        nova/scheduler/filters/num_instances_filter.py, AggregateNumInstancesFilter.
    """

    name: ClassVar = "aggregate_num_instances"
    nova_name: ClassVar = "AggregateNumInstancesFilter"

    def limits(self, hosts: HostView) -> Scores:
        """Return how many instances each host may have: float64, shape (hosts,)."""
        return least(hosts, _KEY, default=self._limit, cast=int)

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say which limits cannot be read."""
        return unread(hosts, _KEY, cast=int)

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts have."""
        return "have as many instances as their aggregates, or the settings, allow"
