"""Enough free memory: what Placement's inventories do today."""

import logging
from typing import Any

from roost.compat.objects import as_request_spec
from roost.compat.scheduler.aggregates import number_from
from roost.compat.scheduler.filters import BaseHostFilter

_log = logging.getLogger(__name__)


class BaseRamFilter(BaseHostFilter):
    """Keep hosts with enough memory left, overcommit included."""

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        """Return the overcommit of a host; override this."""
        raise NotImplementedError

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Say whether a host has the memory, and note the limit it was judged by."""
        requested_ram = as_request_spec(spec_obj).memory_mb
        free_ram_mb = host_state.free_ram_mb
        total_usable_ram_mb = host_state.total_usable_ram_mb
        if total_usable_ram_mb < requested_ram:
            # An instance never overcommits against itself.
            return False
        memory_mb_limit = total_usable_ram_mb * self._get_ram_allocation_ratio(host_state, spec_obj)
        used_ram_mb = total_usable_ram_mb - free_ram_mb
        usable_ram = memory_mb_limit - used_ram_mb
        if usable_ram < requested_ram:
            _log.debug("%s has %s MiB of usable memory, %s are wanted", host_state.host, usable_ram, requested_ram)
            return False
        host_state.limits["memory_mb"] = memory_mb_limit
        return True


class RamFilter(BaseRamFilter):
    """The same overcommit for all hosts."""

    ram_allocation_ratio = 1.5

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return self.ram_allocation_ratio


class AggregateRamFilter(RamFilter):
    """An overcommit set by aggregates."""

    def _get_ram_allocation_ratio(self, host_state: Any, filter_properties: Any) -> float:
        return number_from(host_state, "ram_allocation_ratio", default=self.ram_allocation_ratio, cast_to=float)
