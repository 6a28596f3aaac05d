"""Instances that differ from the report of their host: an operation ``sync`` queries the host.

The report has another state than the status, or lacks the guest of the instance. A report may be late or repeated. The
answer to ``sync`` is current: the host gives it after all earlier orders.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from roost.conductor.operation.lock import lock_instance, new_operation
from roost.conductor.operation.reconcile import is_unsettled
from roost.conductor.operation.row_changes import derive_uuid
from roost.model.names import uuid_bytes
from roost.model.work.guest import MISSING_GUEST, GuestReport, GuestState, holder_of
from roost.model.work.operation import PowerChange, Status
from roost.model.work.work_rows import Put, StatusRow
from roost.ports import Commits, WorkReader

# Operations begun per report; the other instances follow with the next report.
_SYNCS_MAX = 100
# By status: the expected state. In VERIFY_RESIZE an instance may run or not.
_STATES: Mapping[str, GuestState] = {"ACTIVE": "running", "SHUTOFF": "stopped", "SHELVED": "stopped"}
_STATUSES: Mapping[str, Status] = {"running": "ACTIVE", "stopped": "SHUTOFF"}
# Seconds since the last change of an instance without a reported guest: the report may be older than its guest.
_SETTLED_S = 60.0
# Statuses per query.
_PAGE = 500


def differing_instances(
    host: str, guests: Iterable[GuestReport], *, statuses: Iterable[StatusRow], paused: Collection[str]
) -> list[StatusRow]:
    """Return the unlocked instances of a host with a report that contradicts their status, or their missing guest.

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
        and (is_apart(status) if status.status == "VERIFY_RESIZE" else _differs(status, states[status.uuid]))
    ]


def _differs(status: StatusRow, state: str) -> bool:
    """Return whether the reported state of a guest contradicts the status of its instance, or its fault."""
    return status.status in _STATES and (state != _STATES[status.status] or is_apart(status))


def missing_instances(
    reader: WorkReader, hosts: Collection[str], guests: Collection[bytes], *, now_s: float
) -> list[StatusRow]:
    """Return the unlocked instances of a host without a guest in its report, for example after a restore.

    Left out are instances with a fault that says so already, those with an open move, and those that changed within
    the last minute: the host may have built their guest after its report.

    Args:
        hosts: the service, in all letter cases in use.
        guests: uuids of the reported guests.
    """
    reported, found = frozenset(guests), list[StatusRow]()
    for host in sorted(hosts):
        after_id = 0
        while len(found) < _SYNCS_MAX and (page := reader.statuses(after_id=after_id, limit=_PAGE, host=host)):
            after_id = page[-1].id
            absent = [each for each in page if each.uuid not in reported and _is_settled(each, now_s=now_s)]
            found += _without_moves(reader, absent)
    return found


def missing_fault(status: StatusRow) -> str:
    """Return the fault of an instance without a guest on its host."""
    act = "offload" if status.status == "SHELVED" else "rebuild"
    return f"{MISSING_GUEST}{status.host}: {act} or delete the instance"


def lacks_guest(status: StatusRow) -> bool:
    """Return whether the fault of an instance is its missing guest."""
    return status.fault.startswith(MISSING_GUEST)


def is_apart(status: StatusRow) -> bool:
    """Return whether an instance has no guest on its host, according to its fault."""
    return lacks_guest(status) or bool(holder_of(status.fault))


def new_syncs(current: Commits, differing: Sequence[StatusRow], *, now_s: float) -> list[Put]:
    """Return the rows of operations ``sync``, and of the locks on their instances."""
    return [put for status in differing[:_SYNCS_MAX] for put in _new_sync(current, status, now_s=now_s)]


def status_of_state(status: StatusRow, state: str) -> str:
    """Return the status for a reported state; empty: no status fits it.

    A shelved instance stays shelved while it is stopped. A resized one waits for its confirmation in any state.
    """
    if status.status == "VERIFY_RESIZE" and state in _STATUSES:
        return status.status
    return status.status if _STATES.get(status.status) == state else _STATUSES.get(state, "")


def _is_settled(status: StatusRow, *, now_s: float) -> bool:
    """Return whether an instance should have a guest, and no fault says that it is missing."""
    is_old = status.changed_at_s <= now_s - _SETTLED_S
    is_noted = status.fault == missing_fault(status) or bool(holder_of(status.fault))
    return status.status in _STATES and not status.operation_id and is_old and not is_noted


def _without_moves(reader: WorkReader, statuses: Sequence[StatusRow]) -> list[StatusRow]:
    """Return the instances without a move that may still be undone."""
    moved = {status.uuid: status for status in statuses if status.migration_uuid is not None}
    moves = reader.migrations_of_all([*moved]) if moved else []
    open_uuids = {move.instance_uuid for move in moves if is_unsettled(moved[move.instance_uuid], move)}
    return [status for status in statuses if status.uuid not in open_uuids]


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
