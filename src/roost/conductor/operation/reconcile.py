"""Reconcile a returning host: the guests to keep, and the moves to end once it has destroyed the other guests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.engine.columns.state import State
from roost.errors import Conflict
from roost.model.names import uuid_text
from roost.model.work.guest import holder_of
from roost.model.work.work_rows import MigrationRow, Put, StatusRow
from roost.model.writes import Write
from roost.placement.writes.claims import plan_release
from roost.ports import WorkReader

# Statuses of migrations with possible allocations.
OPEN_MOVES = frozenset({"moving", "finished", "left", "reverting"})
_UNSETTLED = OPEN_MOVES - {"left"}
_IN_TRANSIT = frozenset({"moving", "reverting"})
# Kinds of moves that cannot be reverted once they are finished.
_FINAL_KINDS = frozenset({"live", "evacuate"})
# Moves per query.
_PAGE = 500


class HomeAnswers(NamedTuple):
    """What the homes of strangers have answered to queries; all are by uuid of the instance."""

    replaced: Mapping[bytes, int] = {}  # strangers with a guest at their home, each with the version of its status then
    kept: Collection[bytes] = ()  # incomplete strangers that stay, without a guest at their home
    deferred: Mapping[bytes, int] = {}  # strangers that stay while the status of their instance has this version


_NO_ANSWERS = HomeAnswers()


class GuestFates(NamedTuple):
    """The fate of the guests of a host, by uuid of their instances."""

    keep: tuple[bytes, ...]
    hold: tuple[bytes, ...]  # must not run until their evacuation has ended
    destroy: tuple[bytes, ...]
    query: tuple[bytes, ...] = ()  # stay until the home of their instance has answered

    @property
    def is_clean(self) -> bool:
        """Whether all guests belong to the host."""
        return not (self.hold or self.destroy or self.query)


def reconcile(
    host: str,
    guests: Iterable[bytes],
    *,
    statuses: Mapping[bytes, StatusRow],
    migrations: Sequence[MigrationRow],
    strangers: Collection[bytes] = (),
    answers: HomeAnswers = _NO_ANSWERS,
) -> GuestFates:
    """Decide the fate of the guests of a host.

    Only guests of deleted instances and of instances on other hosts are destroyed. Guests of unknown instances, and of
    instances in BUILD without a host, stay: a restored database may be older than the guest. For the same reason, a
    stranger is destroyed only if the home of its instance has a guest.

    Args:
        host: the service in lower case.
        guests: uuids of their instances.
        statuses: of the known instances.
        migrations: of the known instances, at least the open migrations.
        strangers: the guests marked with an unknown operation.
        answers: of the homes of strangers.
    """
    fates: dict[str, list[bytes]] = {"keep": [], "hold": [], "destroy": [], "query": []}
    for uuid in guests:
        moves = [each for each in migrations if each.instance_uuid == uuid and each.status in OPEN_MOVES]
        status = statuses.get(uuid)
        fate = _fate(host, status, moves)
        if fate == "destroy" and status is not None and uuid in strangers:
            fate = _fate_of_stranger(host, status, answers=answers)
        fates[fate].append(uuid)
    return GuestFates(*map(tuple, fates.values()))


def _fate_of_stranger(host: str, status: StatusRow, *, answers: HomeAnswers) -> str:
    """Return the fate of a guest from elsewhere that the database does not know."""
    if status.status == "DELETED" or answers.replaced.get(status.uuid) == status.version:
        return "destroy"
    is_kept = holder_of(status.fault).lower() == host or status.uuid in answers.kept
    return "keep" if is_kept or answers.deferred.get(status.uuid) == status.version else "query"


def _fate(host: str, status: StatusRow | None, moves: Sequence[MigrationRow]) -> str:
    if status is None:
        return "keep"
    if status.status == "DELETED":
        return "destroy"
    local_moves = [each for each in moves if each.source_host.lower() == host or _is_in_transit(each, host)]
    if any(is_held_by(each, host) for each in local_moves):
        # The instance may run elsewhere already, or may have to return. A deletion waits for the host, so the host
        # must not wait for the deletion.
        return "destroy" if status.task == "deleting" else "hold"
    is_home = status.host.lower() == host
    if not is_home and any(has_left(each, host) for each in local_moves):
        return "destroy"  # No move back to this host can begin before it is clean, so the guest is a leftover.
    is_unplaced = status.status == "BUILD" and not status.host
    return "keep" if is_home or local_moves or is_unplaced else "destroy"


def _is_in_transit(move: MigrationRow, host: str) -> bool:
    """Return whether an instance is moving to a host; once it has arrived, its status names the host."""
    return move.status in _IN_TRANSIT and move.target_host.lower() == host


def is_held_by(move: MigrationRow, host: str) -> bool:
    """Return whether a host must not run an instance, because its evacuation has not ended."""
    return (move.kind, move.status, move.source_host.lower()) == ("evacuate", "moving", host.lower())


def moves_away(reader: WorkReader, hosts: set[str]) -> list[MigrationRow]:
    """Return the moves of instances away from an absent host, finished or in progress.

    Args:
        hosts: the service, in all letter cases in use.
    """
    moves: list[MigrationRow] = []
    for host in sorted(hosts):
        for status in ("moving", "finished", "left"):
            after_id = 0
            while page := reader.migrations(after_id=after_id, limit=_PAGE, status=status, source_host=host):
                after_id = page[-1].id
                moves += [each for each in page if has_left(each, host) or is_held_by(each, host)]
    return moves


def end_moves(state: State, moves: list[MigrationRow], *, now_s: float) -> tuple[tuple[Write, ...], tuple[Put, ...]]:
    """Return the writes to end moves with a clean source, and to release their allocations."""
    ends = tuple(replace_row(next_version(move, status="confirmed", changed_at_s=now_s)) for move in moves)
    return plan_release(state, [move.uuid for move in moves]), ends


def is_unsettled(status: StatusRow, move: MigrationRow) -> bool:
    """Return whether a move may still be undone; a final move only waits for its source."""
    is_final = has_left(move, move.source_host) and move.source_host.lower() != status.host.lower()
    return move.status in _UNSETTLED and not is_final


def check_settled(reader: WorkReader, status: StatusRow, *, act: str) -> None:
    """Refuse a request on an instance in ERROR with an open move: the move could then not be confirmed or reverted.

    Args:
        act: the request, as it follows "cannot".

    Raises:
        Conflict: a move is not settled, for example after a failed deletion in VERIFY_RESIZE.
    """
    if status.status == "ERROR" and any(is_unsettled(status, move) for move in reader.migrations_of(status.uuid)):
        name = uuid_text(status.uuid)
        raise Conflict(f"the instance {name} cannot {act}: one of its moves is not settled, so it can only be deleted")


def has_left(move: MigrationRow, host: str) -> bool:
    """Return whether an instance has left a host for good, so that its guest there must be destroyed."""
    is_over = move.status == "left" or (move.kind in _FINAL_KINDS and move.status == "finished")
    return is_over and move.source_host.lower() == host.lower()
