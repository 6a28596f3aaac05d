"""Instances with a reported state that differs from their status: an operation ``sync`` queries the host.

A report may be late or repeated. The answer to ``sync`` is current: the host gives it after all earlier orders.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from roost.conductor.operation.lock import lock_instance, new_operation
from roost.conductor.operation.row_changes import derive_uuid
from roost.model.names import uuid_bytes
from roost.model.work.guest import GuestReport, GuestState
from roost.model.work.operation import PowerChange, Status
from roost.model.work.work_rows import Put, StatusRow
from roost.ports import Commits

# Operations begun per report; the other instances follow with the next report.
_SYNCS_MAX = 100
# By status: the expected state. In VERIFY_RESIZE an instance may run or not.
_STATES: Mapping[str, GuestState] = {"ACTIVE": "running", "SHUTOFF": "stopped", "SHELVED": "stopped"}
_STATUSES: Mapping[str, Status] = {"running": "ACTIVE", "stopped": "SHUTOFF"}


def differing_instances(
    host: str, guests: Iterable[GuestReport], *, statuses: Iterable[StatusRow], paused: Collection[str]
) -> list[StatusRow]:
    """Return the unlocked instances of a host with a reported state that contradicts their status.

    Args:
        host: the service in lower case.
        guests: as the host reports them.
        statuses: of these guests.
        paused: uuids of guests; the agent stopped them until the server decides whether they stay on the host.
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
    """Return the rows of operations ``sync``, and of the locks on their instances."""
    return [put for status in differing[:_SYNCS_MAX] for put in _new_sync(current, status, now_s=now_s)]


def status_of_state(status: StatusRow, state: str) -> str:
    """Return the status for a reported state; empty: no status fits it.

    A shelved instance stays shelved while it is stopped.
    """
    return status.status if _STATES.get(status.status) == state else _STATUSES.get(state, "")


def _new_sync(current: Commits, status: StatusRow, *, now_s: float) -> tuple[Put, ...]:
    operation = new_operation(
        current,
        status,
        kind="sync",
        body=PowerChange(),
        now_s=now_s,
        operation_uuid=derive_uuid("sync", status.uuid, str(status.version).encode()),
    )
    return lock_instance(current, operation, status)
