"""The effects of a restored backup: guests and images that the database does not know, or lacks."""

from collections.abc import Iterable, Sequence

import msgspec

from roost.model.names import uuid_text
from roost.model.work.work_rows import StatusRow
from roost.simulator.cluster.environment.guest_shelf import GuestShelf

_COMPLETE = frozenset({"running", "stopped"})
# Statuses of instances with a guest.
_WITH_GUEST = frozenset({"ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED"})
_STATES = {"ACTIVE": "running", "SHUTOFF": "stopped", "BUILD": "running"}  # of the guest, by status
_SHELVED = frozenset({"SHELVED", "SHELVED_OFFLOADED"})


class RestoredBackup(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of the restore; all are empty before it. Instances are uuids."""

    count: int = 0  # restores so far
    # Instances at rest before the restore, with a complete guest; at the backup, their build had ended.
    complete: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()  # instances without a guest on the host of their restored status
    # Instances that an operation held before the restore: hosts may still carry out its orders, such as a destruction.
    busy: frozenset[str] = frozenset()
    differing: frozenset[str] = frozenset()  # instances with a guest in another state than their restored status
    astray: frozenset[tuple[str, str]] = frozenset()  # guests on other hosts than that of their instance: uuid, host
    imageless: frozenset[str] = frozenset()  # shelved instances without an image


def compare_backup(
    before: RestoredBackup,
    statuses: Sequence[StatusRow],
    restored: Iterable[StatusRow],
    *,
    shelf: GuestShelf,
    hosts: Sequence[str],
) -> RestoredBackup:
    """Return the effects of a restore.

    Args:
        before: the effects of earlier restores.
        statuses: of all instances, before the restore.
        restored: the same afterwards.
        shelf: the guests.
        hosts: all hosts.
    """
    places = {(uuid, host) for host in hosts for uuid in shelf.guests(host)}
    homes = {uuid_text(status.uuid): status for status in restored}
    building = {uuid for uuid, status in homes.items() if status.status == "BUILD"}
    images = {*shelf.images()}
    return RestoredBackup(
        count=before.count + 1,
        complete=frozenset(
            uuid
            for status in statuses
            if status.status in _WITH_GUEST
            and not status.operation_id
            and hosts_of_guest(shelf, hosts, uuid := uuid_text(status.uuid))
            and uuid not in building
        ),
        busy=frozenset(uuid_text(status.uuid) for status in statuses if status.operation_id),
        missing=frozenset(uuid for uuid, status in homes.items() if status.host and (uuid, status.host) not in places),
        differing=frozenset(
            uuid
            for uuid, status in homes.items()
            if (uuid, status.host) in places
            and status.status in _STATES
            and shelf.guests(status.host)[uuid].state != _STATES[status.status]
        ),
        astray=frozenset((uuid, host) for uuid, host in places if uuid not in homes or homes[uuid].host != host),
        imageless=frozenset(
            uuid for uuid, status in homes.items() if status.status in _SHELVED and image_name(uuid) not in images
        ),
    )


def hosts_of_guest(shelf: GuestShelf, hosts: Iterable[str], uuid: str) -> list[str]:
    """Return the hosts with a complete guest of an instance."""
    return [host for host in hosts if (guest := shelf.guests(host).get(uuid)) is not None and guest.state in _COMPLETE]


def image_name(uuid: str) -> str:
    """Return the name of the driver's image of a saved instance."""
    return f"saved-{uuid}"
