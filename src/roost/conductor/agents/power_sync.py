"""Instances of which a host says something else than their status: an operation ``sync`` of their own asks it again.

So a host may be late with what it says, or say it twice: what is written is what it says behind all that it was told.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from roost.conductor.operation.lock import lock_instance, new_operation
from roost.conductor.operation.row_changes import derive_uuid
from roost.model.names import uuid_bytes
from roost.model.work.guest import Found, GuestState
from roost.model.work.operation import Powering, Status
from roost.model.work.work_rows import Put, StatusRow
from roost.ports import Commits

# So many are begun at once; the others when the host says again what it has.
_BEGUN_MAX = 100
# What a host has by the status of an instance. In VERIFY_RESIZE it may run or not.
_STATES: Mapping[str, GuestState] = {"ACTIVE": "running", "SHUTOFF": "stopped", "SHELVED": "stopped"}
_STATUSES: Mapping[str, Status] = {"running": "ACTIVE", "stopped": "SHUTOFF"}


def differing_instances(
    host: str, guests: Iterable[Found], *, statuses: Iterable[StatusRow], paused: Collection[str]
) -> list[StatusRow]:
    """Return the instances of a host that nobody works on, and that run where their status says no, or the other way.

    Args:
        host: the service in lower case.
        guests: what it says that it has.
        statuses: of these.
        paused: uuids of those that its agent has stopped by itself, and starts when it is decided that they stay.
    """
    states = {uuid_bytes(guest.uuid): guest.state for guest in guests if guest.uuid not in paused}
    return [
        status
        for status in statuses
        if status.host.lower() == host
        and not status.operation_id
        and states.get(status.uuid) in _STATUSES
        and status.status in _STATES
        and states[status.uuid] != _STATES[status.status]
    ]


def new_syncs(current: Commits, differing: Sequence[StatusRow], *, now_s: float) -> list[Put]:
    """Return the operations that ask their host about instances, and hold these meanwhile."""
    return [put for status in differing[:_BEGUN_MAX] for put in _begun(current, status, now_s=now_s)]


def reported_status(status: StatusRow, state: str) -> str:
    """Return the status of an instance that its host has in a state; empty: none says that it is well.

    One that is shelved is so while it is stopped.
    """
    return status.status if _STATES.get(status.status) == state else _STATUSES.get(state, "")


def _begun(current: Commits, status: StatusRow, *, now_s: float) -> tuple[Put, ...]:
    operation = new_operation(
        current,
        status,
        kind="sync",
        body=Powering(),
        now_s=now_s,
        operation_uuid=derive_uuid("sync", status.uuid, str(status.version).encode()),
    )
    return lock_instance(current, operation, status)
