"""What Nova had in ``nova.scheduler.driver``: the base of schedulers."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from roost.compat.scheduler.host_manager import HostManager


class ServiceGroup(Protocol):
    """Knows services, and which of them are up."""

    def get_all_by_topic(self, context: object, topic: str) -> Iterable[Mapping[str, Any]]:
        """Return the services that listen to a topic."""

    def service_is_up(self, service: Mapping[str, Any]) -> bool:
        """Say whether a service is up."""


class Scheduler:
    """Base of all schedulers."""

    def __init__(self, host_manager: HostManager, servicegroup_api: ServiceGroup | None = None) -> None:
        self.host_manager = host_manager
        self.servicegroup_api = servicegroup_api

    def run_periodic_tasks(self, context: object) -> None:
        """Do what a scheduler does from time to time: nothing, unless it is overridden."""

    def hosts_up(self, context: object, topic: str) -> list[str]:
        """Return the hosts whose service of a topic is up."""
        services = self.servicegroup_api
        assert services is not None, "a scheduler that asks for hosts that are up is made with a servicegroup_api"
        return [each["host"] for each in services.get_all_by_topic(context, topic) if services.service_is_up(each)]

    def schedule_run_instance(
        self, context: object, request_spec: Mapping[str, Any], admin_password: object, injected_files: object,
        requested_networks: object, is_first_time: object, filter_properties: Mapping[str, Any],
        legacy_bdm_in_spec: object = None,
    ) -> None:  # fmt: skip
        """Choose a host for each instance and have it built there; override this."""
        raise NotImplementedError("Driver must implement schedule_run_instance")

    def select_destinations(
        self, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Choose a host for each instance: tables with host, nodename and limits; override this."""
        raise NotImplementedError("Driver must implement select_destinations")


def instance_count(request_spec: Mapping[str, Any]) -> int:
    """Return how many instances are asked for."""
    return len(request_spec.get("instance_uuids") or ()) or int(request_spec.get("num_instances", 1))
