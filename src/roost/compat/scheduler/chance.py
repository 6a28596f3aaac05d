"""What Nova had in ``nova.scheduler.chance``: any host will do."""

import random
from collections.abc import Mapping
from typing import Any

from roost.compat.exception import NoValidHost
from roost.compat.scheduler.driver import Scheduler, ServiceGroup, instance_count
from roost.compat.scheduler.host_manager import HostManager


class ChanceScheduler(Scheduler):
    """Takes a random host whose service is up and that is not to be ignored."""

    def __init__(
        self,
        host_manager: HostManager,
        servicegroup_api: ServiceGroup | None = None,
        *,
        chance: random.Random | None = None,
    ) -> None:
        super().__init__(host_manager, servicegroup_api)
        self._chance = chance or random.Random()

    def _filter_hosts(self, hosts: list[str], filter_properties: Mapping[str, Any]) -> list[str]:
        ignored = filter_properties.get("ignore_hosts") or ()
        return [host for host in hosts if host not in ignored]

    def _schedule(self, context: object, topic: str, filter_properties: Mapping[str, Any]) -> str:
        up = self.hosts_up(context, topic)
        if not up:
            raise NoValidHost("Is the appropriate service running?")
        left = self._filter_hosts(up, filter_properties)
        if not left:
            raise NoValidHost("Could not find another compute")
        return self._chance.choice(left)

    def select_destinations(
        self, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Choose a random host for each instance."""
        return [
            {"host": self._schedule(context, "compute", filter_properties), "nodename": None, "limits": None}
            for _ in range(instance_count(request_spec))
        ]
