"""The fleet for look-ups of plug-ins; the adapter sets it for each call."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from roost.compat import exception

_current: list[Any] = [None]


@contextlib.contextmanager
def use_fleet(fleet: Any) -> Iterator[None]:
    """Use a fleet (``lookups.Fleet``) for look-ups within the block."""
    before = _current[0]
    _current[0] = fleet
    try:
        yield
    finally:
        _current[0] = before


def decision_time_s() -> float | None:
    """Return the time of the current decision, in seconds since the epoch; None: no decision."""
    return None if _current[0] is None else _current[0].now_s


def current_fleet() -> Any:
    """Return the fleet of the current decision.

    Raises:
        NovaException: no decision is in progress.
    """
    fleet = _current[0]
    if fleet is None:
        raise exception.NovaException("objects can be looked up only while a filter or weigher runs")
    return fleet


def get_group(uuid: str) -> Any:
    """Return a server group.

    Raises:
        InstanceGroupNotFound: the group does not exist.
    """
    for each in current_fleet().groups():
        if each.uuid == uuid:
            return each
    raise exception.InstanceGroupNotFound(group_uuid=uuid)


def get_group_of(instance_uuid: str) -> Any:
    """Return the server group of an instance.

    Raises:
        InstanceGroupNotFound: the instance has no group.
    """
    for each in current_fleet().groups():
        if instance_uuid in each.members:
            return each
    raise exception.InstanceGroupNotFound(group_uuid=f"of instance {instance_uuid}")


def hosts_with(instance_uuids: Iterable[str]) -> list[str]:
    """Return the names of the hosts of some instances."""
    instances = current_fleet().instances
    return sorted({instances[uuid].host for uuid in instance_uuids if uuid in instances})


def get_instance(uuid: str) -> Any:
    """Return an instance.

    Raises:
        InstanceNotFound: the instance has no host.
    """
    instance = current_fleet().instances.get(uuid)
    if instance is None:
        raise exception.InstanceNotFound(instance_id=uuid)
    return instance


def get_aggregate(uuid: str) -> Any:
    """Return an aggregate.

    Raises:
        AggregateNotFound: no aggregate with hosts has this uuid.
    """
    aggregate = current_fleet().aggregates.get(uuid)
    if aggregate is None:
        raise exception.AggregateNotFound(aggregate_id=uuid)
    return aggregate
