"""Enough free disk: what Placement's inventories do today."""

from typing import Any

from roost.compat.objects import as_request_spec
from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import BaseHostFilter


class DiskFilter(BaseHostFilter):
    """Keep hosts with enough disk left, overcommit included."""

    disk_allocation_ratio = 1.0

    def _get_disk_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return self.disk_allocation_ratio

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Say whether a host has the disk, and note the limit it was judged by."""
        asked = as_request_spec(spec_obj)
        requested_mb = 1024 * (asked.root_gb + asked.ephemeral_gb) + asked.swap
        total_mb = host_state.total_usable_disk_gb * 1024
        if total_mb < requested_mb:
            # An instance never overcommits against itself.
            return False
        limit_mb = total_mb * self._get_disk_allocation_ratio(host_state, spec_obj)
        used_mb = total_mb - host_state.free_disk_mb
        if limit_mb - used_mb < requested_mb:
            return False
        host_state.limits["disk_gb"] = limit_mb / 1024
        return True


class AggregateDiskFilter(DiskFilter):
    """An overcommit set by aggregates."""

    def _get_disk_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return number_from(host_state, "disk_allocation_ratio", default=self.disk_allocation_ratio, cast_to=float)
