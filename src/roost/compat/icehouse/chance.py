"""Counterpart of ``nova.scheduler.chance``: picks random hosts."""

import random
from collections.abc import Mapping
from typing import Any

from roost.compat.exception import NoValidHost
from roost.compat.icehouse.deployment import Deployment
from roost.compat.icehouse.driver import Scheduler, ServiceGroup, instance_count, run_payload
from roost.compat.scheduler.host_manager import HostManager


class ChanceScheduler(Scheduler):
    """Picks a random host that is up and not ignored."""

    def __init__(
        self,
        host_manager: HostManager,
        servicegroup_api: ServiceGroup | None = None,
        *,
        chance: random.Random | None = None,
        deployment: Deployment | None = None,
    ) -> None:
        super().__init__(host_manager, servicegroup_api, deployment=deployment)
        self._chance = chance or random.Random()

    def _filter_hosts(self, hosts: list[str], filter_properties: Mapping[str, Any]) -> list[str]:
        ignored = filter_properties.get("ignore_hosts") or ()
        return [host for host in hosts if host not in ignored]

    def _schedule(self, context: object, topic: str, filter_properties: Mapping[str, Any]) -> str:
        up = self.hosts_up(context, topic)
        if not up:
            raise NoValidHost("Is the appropriate service running?")
        remaining = self._filter_hosts(up, filter_properties)
        if not remaining:
            raise NoValidHost("Could not find another compute")
        return self._chance.choice(remaining)

    def select_destinations(
        self, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Choose a random host for each instance."""
        return [
            {"host": self._schedule(context, "compute", filter_properties), "nodename": None, "limits": None}
            for _ in range(instance_count(request_spec))
        ]

    def schedule_run_instance(
        self,
        context: object,
        request_spec: dict[str, Any],
        admin_password: object,
        injected_files: object,
        requested_networks: object,
        is_first_time: object,
        filter_properties: dict[str, Any],
        legacy_bdm_in_spec: object = None,
    ) -> None:
        """Build each instance on a random host. Set an instance without a host to error.

        Raises:
            BadRequest: the request has no instances.
        """
        payload = run_payload(request_spec)
        self.deployment.notify(context, "scheduler.run_instance.start", payload)

        def run(instance_uuid: str, host_spec: dict[str, Any]) -> None:
            host = self._schedule(context, "compute", filter_properties)
            self._send_run_instance(
                context,
                instance_uuid,
                host=host,
                node=None,
                request_spec=host_spec,
                filter_properties={**filter_properties, "request_spec": host_spec},
                requested_networks=requested_networks,
                injected_files=injected_files,
                admin_password=admin_password,
                is_first_time=is_first_time,
                legacy_bdm_in_spec=legacy_bdm_in_spec,
            )

        self._run_each(context, request_spec, run)
        self.deployment.notify(context, "scheduler.run_instance.end", payload)
