"""aggregate_io_ops: hosts with few operations in flight, by limits that aggregates set."""

from typing import ClassVar

from roost.engine.types import Scores
from roost.scheduler.aggregates import least, unread
from roost.scheduler.filters.io_ops import IoOps
from roost.scheduler.hosts import HostView
from roost.scheduler.spec import Spec

_KEY = "max_io_ops_per_host"


class AggregateIoOps(IoOps):
    """Keep hosts with fewer I/O operations in flight than the least limit of their aggregates, or of the settings.

    Source:
        nova/scheduler/filters/io_ops_filter.py, AggregateIoOpsFilter.
    """

    name: ClassVar = "aggregate_io_ops"
    nova_name: ClassVar = "AggregateIoOpsFilter"

    def limits(self, hosts: HostView) -> Scores:
        """Return how many operations each host may have in flight: float64, shape (hosts,)."""
        return least(hosts, _KEY, default=self._limit, cast=int)

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say which limits cannot be read."""
        return unread(hosts, _KEY, cast=int)

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts have."""
        return "have as many I/O operations in flight as their aggregates, or the settings, allow"
