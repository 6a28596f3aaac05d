"""What Nova has in ``nova.scheduler.manager``: the service around a scheduler."""

from collections.abc import Mapping
from typing import Any

from roost.compat.scheduler.driver import Scheduler


class SchedulerManager:
    """Passes what is asked on to its scheduler."""

    def __init__(self, driver: Scheduler) -> None:
        self.driver = driver

    def select_destinations(
        self, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Choose a host for each instance."""
        return self.driver.select_destinations(context, request_spec, filter_properties)

    def select_hosts(
        self, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> list[str]:
        """Choose a host for each instance; return the names."""
        return [each["host"] for each in self.select_destinations(context, request_spec, filter_properties)]

    def _run_periodic_tasks(self, context: object) -> None:
        """Let the scheduler do what it does from time to time."""
        self.driver.run_periodic_tasks(context)
