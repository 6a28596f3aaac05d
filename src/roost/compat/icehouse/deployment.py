"""The services around a scheduler: compute services, instance records, notifications and quotas."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from roost.errors import NotFound, NoValidHost

_log = logging.getLogger(__name__)


class Computes(Protocol):
    """Sends messages to the compute services of hosts; a call returns when its message is sent."""

    def run_instance(
        self,
        context: object,
        instance: Mapping[str, Any],
        host: str,
        *,
        request_spec: Mapping[str, Any],
        filter_properties: Mapping[str, Any],
        requested_networks: object,
        injected_files: object,
        admin_password: object,
        is_first_time: object,
        node: str | None,
        legacy_bdm_in_spec: object,
    ) -> None:
        """Build an instance on a host."""

    def prep_resize(
        self,
        context: object,
        image: object,
        instance: Mapping[str, Any],
        instance_type: Mapping[str, Any],
        host: str,
        reservations: object,
        *,
        request_spec: Mapping[str, Any],
        filter_properties: Mapping[str, Any],
        node: str | None,
    ) -> None:
        """Prepare a host for an instance with a new size."""

    def check_can_live_migrate_destination(
        self,
        context: object,
        instance: Mapping[str, Any],
        destination: str,
        block_migration: object,
        disk_over_commit: object,
    ) -> object:
        """Check that a host can receive a running instance; return the data for its current host.

        Raises:
            MigrationPreCheckError: the host cannot receive it.
            ComputeServiceUnavailable: the host does not answer.
        """

    def live_migration(
        self,
        context: object,
        instance: Mapping[str, Any],
        dest: str,
        block_migration: object,
        host: str,
        *,
        migrate_data: object,
    ) -> None:
        """Migrate a running instance from its host to another."""


class Instances(Protocol):
    """Stores instance records. Every method raises NotFound for an unknown instance."""

    def set_scheduled(self, context: object, instance_uuid: str) -> Mapping[str, Any]:
        """Mark an instance as scheduled, without a host yet; return its record."""

    def set_state(self, context: object, instance_uuid: str, *, vm_state: str, task_state: str | None) -> None:
        """Set the state and the task of an instance."""

    def add_fault(self, context: object, instance_uuid: str, error: Exception) -> None:
        """Add an error to the record of an instance."""


class Notifier(Protocol):
    """Publishes events."""

    def info(self, context: object, event_type: str, payload: Mapping[str, Any]) -> None:
        """Publish an event."""

    def error(self, context: object, event_type: str, payload: Mapping[str, Any]) -> None:
        """Publish a failure."""


class Quotas(Protocol):
    """Quota reservations."""

    def rollback(self, context: object, reservations: object) -> None:
        """Release reservations."""


class Deployment:
    """The services around a scheduler.

    Errors of notifications, and of recording a failure, are logged and otherwise ignored.

    Args:
        notifier: publishes notifications; None: no notifications.
        quotas: needed only for the reservations of ``prep_resize``.
    """

    def __init__(
        self,
        compute_rpcapi: Computes,
        instances: Instances,
        *,
        notifier: Notifier | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        self.compute_rpcapi = compute_rpcapi
        self.instances = instances
        self._notifier, self._quotas = notifier, quotas

    def notify(self, context: object, event_type: str, payload: Mapping[str, Any]) -> None:
        """Publish an event."""
        if self._notifier is not None:
            with _log_failure("The notification %s failed.", event_type):
                self._notifier.info(context, event_type, payload)

    def fail(
        self,
        context: object,
        error: Exception,
        instance_uuid: str,
        *,
        request_spec: Mapping[str, Any],
        method: str,
        vm_state: str,
    ) -> None:
        """Record a failure of an instance: its state, a fault, and a notification.

        Args:
            method: the failed method, such as ``run_instance``.
            vm_state: the new state of the instance.
        """
        is_refused = isinstance(error, NoValidHost)
        _log.warning(
            "Failed to %s instance %s: %s", method, instance_uuid, error, exc_info=None if is_refused else error
        )
        with _log_failure("The failure of instance %s could not be recorded.", instance_uuid):
            self._record_failure(context, error, instance_uuid, vm_state=vm_state)
        if self._notifier is not None:
            payload = {
                "request_spec": request_spec,
                "instance_properties": request_spec.get("instance_properties") or {},
                "instance_id": instance_uuid,
                "state": vm_state,
                "method": method,
                "reason": str(error),
            }
            with _log_failure("The notification of the failure of instance %s failed.", instance_uuid):
                self._notifier.error(context, f"scheduler.{method}", payload)

    def rollback(self, context: object, reservations: object) -> None:
        """Release quota reservations, if any."""
        if reservations and self._quotas is not None:
            with _log_failure("The quota reservations could not be released."):
                self._quotas.rollback(context, reservations)

    def _record_failure(self, context: object, error: Exception, instance_uuid: str, *, vm_state: str) -> None:
        try:
            self.instances.set_state(context, instance_uuid, vm_state=vm_state, task_state=None)
            self.instances.add_fault(context, instance_uuid, error)
        except NotFound:
            _log.info("Instance %s is gone, so its failure is not recorded.", instance_uuid)


@contextmanager
def _log_failure(text: str, *args: str) -> Iterator[None]:
    try:
        yield
    except Exception:  # noqa: BLE001  # this error must not hide the original error, or stop work for other instances
        _log.exception(text, *args)
