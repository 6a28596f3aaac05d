"""Counterpart of ``nova.scheduler.filter_scheduler``, the default: filters, then weighs."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

from roost.compat.exception import NoValidHost
from roost.compat.icehouse.deployment import Deployment
from roost.compat.icehouse.driver import (
    Scheduler,
    ServiceGroup,
    instance_count,
    populate_filter_properties,
    run_payload,
)
from roost.compat.objects import RequestSpec
from roost.compat.scheduler.host_manager import HostManager
from roost.compat.scheduler.host_state import HostState
from roost.compat.scheduler.weights import WeighedHost
from roost.errors import BadSettings

_AFFINE = ("affinity", "anti-affinity")


class FilterScheduler(Scheduler):
    """Picks, for each instance in turn, one of the best hosts that pass the filters.

    Args:
        host_manager: the hosts, filters and weighers.
        servicegroup_api: needed only for ``hosts_up`` and its callers.
        host_subset_size: number of best hosts for the random pick; clamped to 1..all.
        max_attempts: scheduling attempts per instance, >= 1.
        chance: random generator.
        deployment: needed only for messages to compute services.
    """

    def __init__(
        self,
        host_manager: HostManager,
        servicegroup_api: ServiceGroup | None = None,
        *,
        host_subset_size: int = 1,
        max_attempts: int = 3,
        chance: random.Random | None = None,
        deployment: Deployment | None = None,
    ) -> None:
        super().__init__(host_manager, servicegroup_api, deployment=deployment)
        self.host_subset_size = host_subset_size
        self.max_attempts = max_attempts
        self._chance = chance or random.Random()

    def select_destinations(
        self, context: object, request_spec: Mapping[str, Any], filter_properties: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Choose a host for each instance; all or nothing.

        Raises:
            NoValidHost: fewer hosts than instances; only the host states have changed.
        """
        properties = dict(filter_properties)
        selected = self._schedule(context, request_spec, properties)
        if len(selected) < instance_count(request_spec):
            raise NoValidHost("")
        return [
            {"host": each.obj.host, "nodename": each.obj.nodename, "limits": dict(each.obj.limits)} for each in selected
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
        """Choose all hosts, then build each instance on its host. Set an instance without a host to error.

        Remove ``instance_uuids`` from ``request_spec``, and the tried hosts from ``filter_properties``.

        Raises:
            BadRequest: the request has no instances; nothing has changed.
            NoValidHost: too many attempts; no instance has changed.
        """
        payload = run_payload(request_spec)
        self.deployment.notify(context, "scheduler.run_instance.start", payload)
        weighed_hosts = self._schedule(context, request_spec, filter_properties)
        # A message cannot contain the context.
        filter_properties.pop("context", None)

        def run(instance_uuid: str, host_spec: dict[str, Any]) -> None:
            try:
                if not weighed_hosts:
                    raise NoValidHost("")
                self._provision_resource(
                    context,
                    weighed_hosts.pop(0),
                    host_spec,
                    {**filter_properties, "request_spec": host_spec},
                    requested_networks,
                    injected_files,
                    admin_password,
                    is_first_time,
                    instance_uuid,
                    legacy_bdm_in_spec,
                )
            finally:
                # Earlier attempts concern only the first instance.
                if filter_properties.get("retry"):
                    filter_properties["retry"]["hosts"] = []

        self._run_each(context, request_spec, run)
        self.deployment.notify(context, "scheduler.run_instance.end", payload)

    def _provision_resource(
        self,
        context: object,
        weighed_host: WeighedHost,
        request_spec: dict[str, Any],
        filter_properties: dict[str, Any],
        requested_networks: object,
        injected_files: object,
        admin_password: object,
        is_first_time: object,
        instance_uuid: str,
        legacy_bdm_in_spec: object = None,
    ) -> None:
        """Build an instance on its host. The host state already counts the instance."""
        host = weighed_host.obj
        populate_filter_properties(filter_properties, host=host.host, node=host.nodename, limits=host.limits)
        self._send_run_instance(
            context,
            instance_uuid,
            host=host.host,
            node=host.nodename,
            request_spec=request_spec,
            filter_properties=filter_properties,
            requested_networks=requested_networks,
            injected_files=injected_files,
            admin_password=admin_password,
            is_first_time=is_first_time,
            legacy_bdm_in_spec=legacy_bdm_in_spec,
        )

    def _get_all_host_states(self, context: object) -> Iterable[HostState]:
        return self.host_manager.get_all_host_states(context)

    def _get_configuration_options(self) -> Mapping[str, Any]:
        """Return the ``config_options`` for plug-ins."""
        return {}

    def _populate_retry(self, properties: dict[str, Any]) -> None:
        """Count the attempt, unless a retry is impossible: with one attempt, or with forced hosts."""
        if self.max_attempts < 1:
            raise BadSettings("scheduler.max_attempts", "must be 1 or more")
        if self.max_attempts == 1 or properties.get("force_hosts") or properties.get("force_nodes"):
            return
        retry = properties.pop("retry", None) or {"num_attempts": 0, "hosts": []}
        retry["num_attempts"] += 1
        properties["retry"] = retry
        if retry["num_attempts"] > self.max_attempts:
            raise NoValidHost(f"Exceeded max scheduling attempts {self.max_attempts}")

    def _setup_instance_group(self, properties: dict[str, Any]) -> bool:
        """Return whether chosen hosts must be added to the request's group."""
        group = properties.get("instance_group")
        return group is not None and group.policy in _AFFINE

    def _schedule(
        self, context: object, request_spec: Mapping[str, Any], filter_properties: dict[str, Any]
    ) -> list[WeighedHost]:
        """Return one weighed host per instance; fewer if hosts run out."""
        update_group_hosts = self._setup_instance_group(filter_properties)
        self._populate_retry(filter_properties)
        filter_properties.update(
            context=context,
            request_spec=request_spec,
            config_options=self._get_configuration_options(),
            instance_type=filter_properties.get("instance_type") or request_spec.get("instance_type"),
        )
        if update_group_hosts:
            filter_properties["group_hosts"] = set(filter_properties["instance_group"].hosts)
        spec_obj = RequestSpec.from_primitives(context, request_spec, filter_properties)
        uuids = request_spec.get("instance_uuids") or ()
        hosts: list[HostState] = list(self._get_all_host_states(context))
        selected: list[WeighedHost] = []
        for number in range(instance_count(request_spec)):
            spec_obj.instance_uuid = uuids[number] if uuids else None
            hosts = self.host_manager.get_filtered_hosts(hosts, spec_obj, index=number)
            if not hosts:
                break
            chosen = self._choose(self.host_manager.get_weighed_hosts(hosts, spec_obj))
            selected.append(chosen)
            chosen.obj.consume_from_request(spec_obj)
            if update_group_hosts:
                assert spec_obj.instance_group is not None
                spec_obj.instance_group.hosts.append(chosen.obj.host)
                filter_properties["group_hosts"].add(chosen.obj.host)
                if spec_obj.instance_uuid is not None:
                    spec_obj.instance_group.members.append(spec_obj.instance_uuid)
        return selected

    def _choose(self, weighed: list[WeighedHost]) -> WeighedHost:
        size = max(1, min(self.host_subset_size, len(weighed)))
        return self._chance.choice(weighed[:size])
