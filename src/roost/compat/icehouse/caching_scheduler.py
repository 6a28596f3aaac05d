"""What Nova had in ``nova.scheduler.caching_scheduler``: filter and weigh hosts as they were a moment ago."""

from collections.abc import Iterable
from typing import Any

from roost.compat.icehouse.filter_scheduler import FilterScheduler
from roost.compat.scheduler.host_state import HostState


class CachingScheduler(FilterScheduler):
    """Keeps the hosts in memory; what it chose is counted there until the next refresh."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.all_host_states: list[HostState] | None = None

    def run_periodic_tasks(self, context: object) -> None:
        """Read all hosts anew."""
        self.all_host_states = self._get_up_hosts(context)

    def _get_all_host_states(self, context: object) -> Iterable[HostState]:
        if self.all_host_states is None:
            self.all_host_states = self._get_up_hosts(context)
        return self.all_host_states

    def _get_up_hosts(self, context: object) -> list[HostState]:
        return list(super()._get_all_host_states(context))
