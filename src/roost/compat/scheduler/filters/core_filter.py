"""Enough free virtual CPUs: what Placement's inventories do today."""

import logging
from typing import Any

from roost.compat.objects import as_request_spec
from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import BaseHostFilter

_log = logging.getLogger(__name__)


class BaseCoreFilter(BaseHostFilter):
    """Keep hosts with enough virtual CPUs left, overcommit included."""

    def _get_cpu_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        """Return the overcommit of a host; override this."""
        raise NotImplementedError

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Say whether a host has the virtual CPUs, and note the limit it was judged by."""
        if not host_state.vcpus_total:
            _log.warning("how many virtual CPUs %s has is not known; it passes", host_state.host)
            return True
        requested = as_request_spec(spec_obj).vcpus
        limit = host_state.vcpus_total * self._get_cpu_allocation_ratio(host_state, spec_obj)
        if limit > 0:
            host_state.limits["vcpu"] = limit
            if requested > host_state.vcpus_total:
                # An instance never overcommits against itself.
                return False
        return bool(limit - host_state.vcpus_used >= requested)


class CoreFilter(BaseCoreFilter):
    """The same overcommit for all hosts."""

    cpu_allocation_ratio = 16.0

    def _get_cpu_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return self.cpu_allocation_ratio


class AggregateCoreFilter(CoreFilter):
    """An overcommit set by aggregates."""

    def _get_cpu_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return number_from(host_state, "cpu_allocation_ratio", default=self.cpu_allocation_ratio, cast_to=float)
