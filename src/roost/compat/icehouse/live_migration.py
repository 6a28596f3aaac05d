"""Live migration: moves a running instance to another host."""

from collections.abc import Mapping
from typing import Any

from roost.compat.exception import (
    ComputeServiceUnavailable,
    MigrationPreCheckError,
    NoValidHost,
    UnableToMigrateToSelf,
)
from roost.compat.icehouse.driver import Scheduler
from roost.errors import BadRequest


def live_migrate(
    context: object,
    driver: Scheduler,
    instance: Mapping[str, Any],
    dest: str | None,
    *,
    block_migration: object,
    disk_over_commit: object,
) -> None:
    """Migrate an instance to a given host, or to one chosen by the driver.

    Args:
        instance: its record, with ``instance_type`` and optionally ``image``.
        dest: target host; None or empty: the first chosen host that can receive the instance.

    Raises:
        BadRequest: the record has no host or no ``instance_type``.
        ComputeServiceUnavailable: the current host, or the given target, is not up.
        UnableToMigrateToSelf: the target is the current host.
        MigrationPreCheckError: the given target lacks memory, or cannot receive the instance.
        NoValidHost: no host can receive it. In all these cases no migration has been started.
    """
    for name in ("host", "instance_type"):
        if not instance.get(name):
            raise BadRequest(f"the record of instance {instance['uuid']} has no {name}")
    source: str = instance["host"]
    _check_is_up(context, driver, source)
    computes = driver.deployment.compute_rpcapi
    if dest:
        _check_destination(context, driver, instance, dest)
        data = computes.check_can_live_migrate_destination(context, instance, dest, block_migration, disk_over_commit)
    else:
        dest, data = _find_destination(
            context, driver, instance, block_migration=block_migration, disk_over_commit=disk_over_commit
        )
    computes.live_migration(context, instance, dest, block_migration, source, migrate_data=data)


def _check_is_up(context: object, driver: Scheduler, host: str) -> None:
    if host not in driver.hosts_up(context, "compute"):
        raise ComputeServiceUnavailable(host=host)


def _check_destination(context: object, driver: Scheduler, instance: Mapping[str, Any], dest: str) -> None:
    if dest == instance["host"]:
        raise UnableToMigrateToSelf(instance_id=instance["uuid"], host=dest)
    _check_is_up(context, driver, dest)
    states = driver.host_manager.get_all_host_states(context)
    free_mib = max((state.free_ram_mb for state in states if state.host == dest), default=None)
    if free_mib is None:
        raise MigrationPreCheckError(reason=f"the memory of {dest} is unknown")
    required_mib = instance["instance_type"].get("memory_mb", 0)
    if free_mib < required_mib:
        reason = f"{dest} has {free_mib} MiB of memory free, and instance {instance['uuid']} needs {required_mib} MiB"
        raise MigrationPreCheckError(reason=reason)


def _find_destination(
    context: object,
    driver: Scheduler,
    instance: Mapping[str, Any],
    *,
    block_migration: object,
    disk_over_commit: object,
) -> tuple[str, object]:
    """Return the first chosen host that can receive an instance, and the migration data for the current host."""
    request_spec = {
        "instance_properties": instance,
        "instance_type": instance["instance_type"],
        "instance_uuids": [instance["uuid"]],
        "image": instance.get("image"),
    }
    computes = driver.deployment.compute_rpcapi
    ignored = [instance["host"]]
    while True:
        chosen = driver.select_destinations(context, request_spec, {"ignore_hosts": [*ignored]})
        host: str = chosen[0]["host"]
        if host in ignored:
            # A driver that does not ignore hosts would cause an endless loop.
            raise NoValidHost(f"The scheduler chose {host}, which must be ignored")
        try:
            return host, computes.check_can_live_migrate_destination(
                context, instance, host, block_migration, disk_over_commit
            )
        except (ComputeServiceUnavailable, MigrationPreCheckError):
            ignored.append(host)
