"""Counterpart of ``nova.scheduler.driver``: the base of schedulers."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from roost.compat.icehouse.deployment import Deployment
from roost.compat.scheduler.host_manager import HostManager
from roost.errors import BadRequest, NotFound

_log = logging.getLogger(__name__)


class ServiceGroup(Protocol):
    """Services and their liveness."""

    def get_all_by_topic(self, context: object, topic: str) -> Iterable[Mapping[str, Any]]:
        """Return the services of a topic."""

    def service_is_up(self, service: Mapping[str, Any]) -> bool:
        """Return whether a service is up."""


class Scheduler:
    """Base of all schedulers.

    Args:
        servicegroup_api: needed only for ``hosts_up`` and its callers.
        deployment: needed only for messages to compute services.
    """

    def __init__(
        self,
        host_manager: HostManager,
        servicegroup_api: ServiceGroup | None = None,
        *,
        deployment: Deployment | None = None,
    ) -> None:
        self.host_manager = host_manager
        self.servicegroup_api = servicegroup_api
        self._deployment = deployment

    @property
    def deployment(self) -> Deployment:
        """The services around the scheduler."""
        assert self._deployment is not None, "a scheduler needs a deployment to send messages"
        return self._deployment

    def run_periodic_tasks(self, context: object) -> None:
        """Run periodic tasks: none, unless overridden."""

    def hosts_up(self, context: object, topic: str) -> list[str]:
        """Return the hosts with a live service of a topic."""
        services = self.servicegroup_api
        assert services is not None, "a scheduler needs a servicegroup_api to find live hosts"
        return [each["host"] for each in services.get_all_by_topic(context, topic) if services.service_is_up(each)]

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
        """Choose a host for each instance and build it there; override this."""
        raise NotImplementedError("Driver must implement schedule_run_instance")

    def select_destinations(
        self, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Choose a host for each instance: dicts with host, nodename and limits; override this."""
        raise NotImplementedError("Driver must implement select_destinations")

    def _run_each(
        self, context: object, request_spec: dict[str, Any], run: Callable[[str, dict[str, Any]], None]
    ) -> None:
        """Run instances one after the other; a failure of one does not affect the others.

        Args:
            request_spec: its ``instance_uuids`` are removed.
            run: called with an instance uuid, and the request for its host, with its ``launch_index``.
        """
        for number, instance_uuid in enumerate(request_spec.pop("instance_uuids")):
            # A new dict for each message: the previous message may still be in use.
            properties = {**(request_spec.get("instance_properties") or {}), "launch_index": number}
            host_spec = {**request_spec, "instance_properties": properties}
            try:
                run(instance_uuid, host_spec)
            except Exception as error:  # noqa: BLE001  # other instances do not depend on this one
                handle_schedule_error(context, error, instance_uuid, host_spec, deployment=self.deployment)

    def _send_run_instance(
        self,
        context: object,
        instance_uuid: str,
        *,
        host: str,
        node: str | None,
        request_spec: Mapping[str, Any],
        filter_properties: Mapping[str, Any],
        requested_networks: object,
        injected_files: object,
        admin_password: object,
        is_first_time: object,
        legacy_bdm_in_spec: object,
    ) -> None:
        """Build an instance on a host, unless the instance is gone."""
        try:
            instance = self.deployment.instances.set_scheduled(context, instance_uuid)
        except NotFound:
            _log.warning("Instance %s disappeared while it was scheduled.", instance_uuid)
            return
        self.deployment.compute_rpcapi.run_instance(
            context,
            instance,
            host,
            node=node,
            request_spec=request_spec,
            filter_properties=filter_properties,
            requested_networks=requested_networks,
            injected_files=injected_files,
            admin_password=admin_password,
            is_first_time=is_first_time,
            legacy_bdm_in_spec=legacy_bdm_in_spec,
        )


def handle_schedule_error(
    context: object, ex: Exception, instance_uuid: str, request_spec: Mapping[str, Any], *, deployment: Deployment
) -> None:
    """Record that an instance could not be run: set it to error, add a fault, and notify."""
    deployment.fail(context, ex, instance_uuid, request_spec=request_spec, method="run_instance", vm_state="error")


def instance_count(request_spec: Mapping[str, Any]) -> int:
    """Return the requested number of instances."""
    return len(request_spec.get("instance_uuids") or ()) or int(request_spec.get("num_instances", 1))


def run_payload(request_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notification payload of a request to run instances.

    Raises:
        BadRequest: the request has no instances.
    """
    if not request_spec.get("instance_uuids"):
        raise BadRequest("request_spec has no instances: instance_uuids is missing or empty")
    return {"request_spec": dict(request_spec)}


def populate_filter_properties(
    filter_properties: dict[str, Any], *, host: str, node: str | None, limits: Mapping[str, Any] | None
) -> None:
    """Add a host to the tried hosts of a request, and set the request's limits to those of the host.

    Forced hosts and nodes are not added, because they are never retried. For forced hosts, the limits stay unchanged.
    """
    is_host_forced = bool(filter_properties.get("force_hosts"))
    retry = filter_properties.get("retry")
    if retry and not (is_host_forced or filter_properties.get("force_nodes")):
        filter_properties["retry"] = {**retry, "hosts": [*(retry.get("hosts") or ()), [host, node]]}
    if not is_host_forced:
        filter_properties["limits"] = dict(limits or {})
