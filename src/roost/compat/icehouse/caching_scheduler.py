"""Counterpart of ``nova.scheduler.caching_scheduler``: filters and weighs cached hosts."""

from collections.abc import Iterable
from typing import Any

from roost.compat.icehouse.filter_scheduler import FilterScheduler
from roost.compat.scheduler.host_state import HostState


class CachingScheduler(FilterScheduler):
    """Caches the hosts, and counts its choices in the cache until the next refresh."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.all_host_states: list[HostState] | None = None

    def run_periodic_tasks(self, context: object) -> None:
        """Reload all hosts."""
        self.all_host_states = self._get_up_hosts(context)

    def _get_all_host_states(self, context: object) -> Iterable[HostState]:
        if self.all_host_states is None:
            self.all_host_states = self._get_up_hosts(context)
        return self.all_host_states

    def _get_up_hosts(self, context: object) -> list[HostState]:
        return list(super()._get_all_host_states(context))
