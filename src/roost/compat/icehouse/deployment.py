"""What is around a scheduler that sends messages: compute services, records of instances, and those who listen."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from roost.errors import NotFound, NoValidHost

_log = logging.getLogger(__name__)


class Computes(Protocol):
    """Takes messages to the compute services of hosts; each call returns once its message is on the way."""

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
        """Have an instance built on a host."""

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
        """Have a host get ready for an instance that is to have another size."""

    def check_can_live_migrate_destination(
        self,
        context: object,
        instance: Mapping[str, Any],
        destination: str,
        block_migration: object,
        disk_over_commit: object,
    ) -> object:
        """Ask a host whether it can take a running instance; return what its present host has to know of that.

        Raises:
            MigrationPreCheckError: it cannot.
            ComputeServiceUnavailable: it does not answer.
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
        """Have the host of a running instance hand it over to another."""


class Instances(Protocol):
    """Keeps the records of instances. Each method raises NotFound where there is no such instance."""

    def set_scheduled(self, context: object, instance_uuid: str) -> Mapping[str, Any]:
        """Note that an instance is scheduled now, and on no host yet; return its record."""

    def set_state(self, context: object, instance_uuid: str, *, vm_state: str, task_state: str | None) -> None:
        """Note the state that an instance is in, and what is being done to it."""

    def add_fault(self, context: object, instance_uuid: str, error: Exception) -> None:
        """Note an error, for whoever asks what became of an instance."""


class Notifier(Protocol):
    """Tells others of events."""

    def info(self, context: object, event_type: str, payload: Mapping[str, Any]) -> None:
        """Tell of something that happened."""

    def error(self, context: object, event_type: str, payload: Mapping[str, Any]) -> None:
        """Tell of something that failed."""


class Quotas(Protocol):
    """Keeps what is reserved of quotas."""

    def rollback(self, context: object, reservations: object) -> None:
        """Give back what was reserved."""


class Deployment:
    """The neighbours of a scheduler.

    What fails while others are told, or while a failure is noted, is logged and stops nothing.

    Args:
        notifier: None: nobody listens.
        quotas: only for reservations that are handed to ``prep_resize``.
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
        """Tell those who listen of something that happened."""
        if self._notifier is not None:
            with _log_failure("Nobody is told of %s.", event_type):
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
        """Note that something failed for an instance: its state, a fault, and a notification of the error.

        Args:
            method: what failed, such as ``run_instance``.
            vm_state: what the instance is in from now on.
        """
        is_refused = isinstance(error, NoValidHost)
        _log.warning(
            "Failed to %s instance %s: %s", method, instance_uuid, error, exc_info=None if is_refused else error
        )
        with _log_failure("The failure of instance %s is noted nowhere.", instance_uuid):
            self._note(context, error, instance_uuid, vm_state=vm_state)
        if self._notifier is not None:
            payload = {
                "request_spec": request_spec,
                "instance_properties": request_spec.get("instance_properties") or {},
                "instance_id": instance_uuid,
                "state": vm_state,
                "method": method,
                "reason": str(error),
            }
            with _log_failure("Nobody is told of the failure of instance %s.", instance_uuid):
                self._notifier.error(context, f"scheduler.{method}", payload)

    def rollback(self, context: object, reservations: object) -> None:
        """Give back what is reserved of quotas, if anything is."""
        if reservations and self._quotas is not None:
            with _log_failure("What is reserved of quotas is not given back."):
                self._quotas.rollback(context, reservations)

    def _note(self, context: object, error: Exception, instance_uuid: str, *, vm_state: str) -> None:
        try:
            self.instances.set_state(context, instance_uuid, vm_state=vm_state, task_state=None)
            self.instances.add_fault(context, instance_uuid, error)
        except NotFound:
            _log.info("Instance %s is gone, and its failure with it.", instance_uuid)


@contextmanager
def _log_failure(text: str, *args: str) -> Iterator[None]:
    try:
        yield
    except Exception:  # noqa: BLE001  # other instances, and the error that is being told, must not be lost by it
        _log.exception(text, *args)
