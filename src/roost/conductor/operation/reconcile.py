"""A host comes back: which instances are its own still, and which moves end when it has nothing of the others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.engine.columns.state import State
from roost.errors import Conflict
from roost.model.names import uuid_text
from roost.model.work.work_rows import MigrationRow, Put, StatusRow
from roost.model.writes import Write
from roost.placement.writes.claims import given_back
from roost.ports import WorkReader

# Of migrations that hold something still, or may.
OPEN_MOVES = frozenset({"moving", "finished", "left", "reverting"})
_UNDONE = OPEN_MOVES - {"left"}
_ON_ITS_WAY = frozenset({"moving", "reverting"})
# Moves that nobody undoes when they are finished.
_LEFT = frozenset({"live", "evacuate"})
# So many of the moves of a host are read at once.
_PAGE = 500


class Reconciled(NamedTuple):
    """What is to become of the instances that a host has, by their uuids."""

    keep: tuple[bytes, ...]
    hold: tuple[bytes, ...]  # they must not run until it is known where they belong
    destroy: tuple[bytes, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is there that is not the host's own."""
        return not self.hold and not self.destroy


def reconcile(
    host: str, guests: Iterable[bytes], *, statuses: Mapping[bytes, StatusRow], migrations: Sequence[MigrationRow]
) -> Reconciled:
    """Say what is to become of the instances that a host has.

    Only what is known to be elsewhere, or to be no more, goes. An instance that nobody knows of stays, and so does one
    that is on no host yet: the database may be older than the host.

    Args:
        host: the service in lower case.
        guests: uuids of the instances that it has.
        statuses: of those of them that are known.
        migrations: of these, at least those that are open.
    """
    found: dict[str, list[bytes]] = {"keep": [], "hold": [], "destroy": []}
    for uuid in guests:
        moves = [each for each in migrations if each.instance_uuid == uuid and each.status in OPEN_MOVES]
        found[_fate(host, statuses.get(uuid), moves)].append(uuid)
    return Reconciled(tuple(found["keep"]), tuple(found["hold"]), tuple(found["destroy"]))


def _fate(host: str, status: StatusRow | None, moves: Sequence[MigrationRow]) -> str:
    if status is None:
        return "keep"
    if status.status == "DELETED":
        return "destroy"
    here = [each for each in moves if each.source_host.lower() == host or _is_on_its_way(each, host)]
    if any(is_held_by(each, host) for each in here):
        return "hold"  # It may run elsewhere already, and it may have to come back.
    is_home = status.host.lower() == host
    if not is_home and any(is_left_by(each, host) for each in here):
        return "destroy"  # A move back here begins when the host is clean, so this is what was left then.
    is_nowhere_yet = status.status == "BUILD" and not status.host
    return "keep" if is_home or here or is_nowhere_yet else "destroy"


def _is_on_its_way(move: MigrationRow, host: str) -> bool:
    """Say whether a host may have what moves there still; once that has arrived, its status says where it is."""
    return move.status in _ON_ITS_WAY and move.target_host.lower() == host


def is_held_by(move: MigrationRow, host: str) -> bool:
    """Say whether a host must not run an instance until it is decided where it belongs."""
    return (move.kind, move.status, move.source_host.lower()) == ("evacuate", "moving", host.lower())


def moves_away(reader: WorkReader, hosts: set[str]) -> list[MigrationRow]:
    """Return the moves by which instances left a host that was away, or are leaving it.

    Args:
        hosts: the service, in all letter cases that it is known by.
    """
    found: list[MigrationRow] = []
    for host in sorted(hosts):
        for status in ("moving", "finished", "left"):
            after_id = 0
            while page := reader.migrations(after_id=after_id, most=_PAGE, status=status, source_host=host):
                after_id = page[-1].id
                found += [each for each in page if is_left_by(each, host) or is_held_by(each, host)]
    return found


def end_moves(state: State, moves: list[MigrationRow], *, now_s: float) -> tuple[tuple[Write, ...], tuple[Put, ...]]:
    """Return what ends moves whose old host has nothing left of their instances: what they hold is given back."""
    over = tuple(replace_row(next_version(move, status="confirmed", changed_at_s=now_s)) for move in moves)
    return given_back(state, [move.uuid for move in moves]), over


def is_unsettled(status: StatusRow, move: MigrationRow) -> bool:
    """Say whether a move of an instance may still be undone: one for good waits for the old host alone."""
    is_for_good = is_left_by(move, move.source_host) and move.source_host.lower() != status.host.lower()
    return move.status in _UNDONE and not is_for_good


def check_settled(reader: WorkReader, status: StatusRow, *, act: str) -> None:
    """Refuse what would leave a move of an instance behind that nobody could confirm or undo any more.

    Args:
        act: what is asked, after "cannot".

    Raises:
        Conflict: one is not settled, as where the deletion of an instance failed that waited to be confirmed.
    """
    if status.status == "ERROR" and any(is_unsettled(status, move) for move in reader.migrations_of(status.uuid)):
        name = uuid_text(status.uuid)
        raise Conflict(f"the instance {name} cannot {act}: a move of it is not settled, so it can only be deleted")


def is_left_by(move: MigrationRow, host: str) -> bool:
    """Say whether an instance is elsewhere for good, and what is left of it on its old host goes."""
    is_over = move.status == "left" or (move.kind in _LEFT and move.status == "finished")
    return is_over and move.source_host.lower() == host.lower()
