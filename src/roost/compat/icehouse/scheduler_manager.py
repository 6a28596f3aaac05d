"""Counterpart of ``nova.scheduler.manager``: the service of a scheduler."""

from collections.abc import Iterable, Mapping
from typing import Any

from roost.compat.exception import NoValidHost
from roost.compat.icehouse.driver import Scheduler, populate_filter_properties
from roost.compat.icehouse.live_migration import live_migrate
from roost.errors import RoostError


class SchedulerManager:
    """Receives messages, and passes them to the scheduler or to the compute service of a host."""

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

    def run_instance(
        self,
        context: object,
        request_spec: dict[str, Any],
        admin_password: object,
        injected_files: object,
        requested_networks: object,
        is_first_time: object,
        filter_properties: dict[str, Any],
        legacy_bdm_in_spec: object = True,  # noqa: FBT002  # Nova's
    ) -> None:
        """Choose a host for each instance, and build it there.

        If the whole request fails, all its instances are set to error. The error is raised, except NoValidHost.
        """
        instance_uuids = list(request_spec.get("instance_uuids") or ())
        try:
            self.driver.schedule_run_instance(
                context,
                request_spec,
                admin_password,
                injected_files,
                requested_networks,
                is_first_time,
                filter_properties,
                legacy_bdm_in_spec,
            )
        except Exception as error:
            self._fail(context, error, instance_uuids, request_spec, method="run_instance", vm_state="error")
            if not isinstance(error, NoValidHost):
                raise

    def prep_resize(
        self,
        context: object,
        image: object,
        request_spec: Mapping[str, Any],
        filter_properties: Mapping[str, Any],
        instance: Mapping[str, Any],
        instance_type: Mapping[str, Any],
        reservations: object,
    ) -> None:
        """Choose a host for an instance with a new size, and prepare the host.

        Without a valid host, the instance keeps its state. Any other error sets the instance to error, and is raised.
        In both cases the quota reservations are released.
        """
        deployment = self.driver.deployment
        # The scheduler counts the attempt in this dict, unless a retry is impossible.
        retry = filter_properties.get("retry") or {"num_attempts": 0, "hosts": []}
        properties = {**filter_properties, "instance_type": instance_type, "retry": retry}
        try:
            chosen = self.driver.select_destinations(context, request_spec, properties)[0]
            if not retry["num_attempts"]:
                del properties["retry"]
            populate_filter_properties(
                properties, host=chosen["host"], node=chosen["nodename"], limits=chosen["limits"]
            )
            deployment.compute_rpcapi.prep_resize(
                context,
                image,
                instance,
                instance_type,
                chosen["host"],
                reservations,
                request_spec=request_spec,
                filter_properties=properties,
                node=chosen["nodename"],
            )
        except Exception as error:
            is_refused = isinstance(error, NoValidHost)
            vm_state = instance.get("vm_state", "active") if is_refused else "error"
            self._fail(context, error, [instance["uuid"]], request_spec, method="prep_resize", vm_state=vm_state)
            deployment.rollback(context, reservations)
            if not is_refused:
                raise

    def live_migration(
        self,
        context: object,
        instance: Mapping[str, Any],
        dest: str | None,
        block_migration: object,
        disk_over_commit: object,
    ) -> None:
        """Migrate a running instance to a given host, or to a chosen one.

        Raises:
            RoostError: from ``live_migrate``; the instance keeps its state.
            Exception: any other error; the instance is in error.
        """
        try:
            live_migrate(
                context,
                self.driver,
                instance,
                dest,
                block_migration=block_migration,
                disk_over_commit=disk_over_commit,
            )
        except Exception as error:
            vm_state = instance.get("vm_state", "active") if isinstance(error, RoostError) else "error"
            request_spec = {"instance_properties": {"uuid": instance["uuid"]}}
            self._fail(context, error, [instance["uuid"]], request_spec, method="live_migration", vm_state=vm_state)
            raise

    def _fail(
        self,
        context: object,
        error: Exception,
        instance_uuids: Iterable[str],
        request_spec: Mapping[str, Any],
        *,
        method: str,
        vm_state: str,
    ) -> None:
        for instance_uuid in instance_uuids:
            self.driver.deployment.fail(
                context, error, instance_uuid, request_spec=request_spec, method=method, vm_state=vm_state
            )

    def _run_periodic_tasks(self, context: object) -> None:
        """Run the periodic tasks of the scheduler."""
        self.driver.run_periodic_tasks(context)
