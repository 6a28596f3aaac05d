"""Not too many instances on one host."""

from typing import Any

from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import BaseHostFilter


class NumInstancesFilter(BaseHostFilter):
    """Keep hosts with fewer instances than the limit."""

    max_instances_per_host = 50

    def _get_max_instances_per_host(self, host_state: Any, spec_obj: Any) -> int:
        """Return the limit of a host; override this to set another."""
        return self.max_instances_per_host

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Say whether a host may take another instance."""
        return bool(host_state.num_instances < self._get_max_instances_per_host(host_state, spec_obj))


class AggregateNumInstancesFilter(NumInstancesFilter):
    """A limit set by aggregates."""

    def _get_max_instances_per_host(self, host_state: Any, spec_obj: Any) -> int:
        return number_from(host_state, "max_instances_per_host", default=self.max_instances_per_host, cast_to=int)
