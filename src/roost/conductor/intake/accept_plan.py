"""Accept and rehearse plans of moves."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from roost.conductor.intake.accept_drain import drain_method, drain_request
from roost.conductor.operation.stored_request import Documents, group_of
from roost.conductor.operation.story import line
from roost.errors import BadRequest
from roost.model.fleet import Departure
from roost.model.names import derive_uuid, uuid_bytes
from roost.model.request import Destination, Request
from roost.model.work.change_memory import AppliedMove, PlanApplication
from roost.model.work.move_windows import opening_at, parse_window
from roost.model.work.work_rows import OperationRow, Put, StatusRow
from roost.placement.write_plan import Plan
from roost.ports import Commits, WorkReader

Statuses = Mapping[bytes, StatusRow]
# Rows per query.
_PAGE = 500


def check_moves(moves: Sequence[AppliedMove]) -> None:
    """Check that each instance moves once, and that each move needs earlier moves only.

    Raises:
        BadRequest: otherwise, or a uuid is invalid.
    """
    numbers, instances = set[int](), set[bytes]()
    for move in moves:
        uuid = uuid_bytes(move.instance)
        if uuid is None:
            raise BadRequest(f"the instance {move.instance!r} of move {move.number} is not a valid UUID")
        if uuid in instances:
            raise BadRequest(f"the instance {move.instance} moves twice: give one move for each instance")
        if move.number in numbers:
            raise BadRequest(f"two moves have the number {move.number}: give each move its own number")
        later = next((number for number in move.after if number not in numbers), None)
        if later is not None:
            raise BadRequest(f"move {move.number} needs move {later}, which is not before it: add it, or reorder them")
        numbers.add(move.number)
        instances.add(uuid)


def check_windows(windows: Sequence[str]) -> None:
    """Check the windows of time for moves.

    Raises:
        BadRequest: one has a wrong form, or is empty.
    """
    for text in windows:
        try:
            parse_window(text)
        except ValueError as error:
            raise BadRequest(str(error)) from None


def find_opening(windows: Sequence[str], *, now_s: float) -> float:
    """Return the time of the next window; 0: moves may begin now."""
    opens_at_s = opening_at([parse_window(text) for text in windows], now_s)
    return opens_at_s if opens_at_s > now_s else 0.0


def format_opening(opens_at_s: float) -> str:
    """Format the time of a window for the story."""
    return f"{datetime.fromtimestamp(opens_at_s, UTC):%Y-%m-%d %H:%M}Z"


def find_statuses(
    reader: WorkReader, moves: Sequence[AppliedMove], *, may_move: Callable[[StatusRow], bool]
) -> Statuses:
    """Return the statuses of the instances of moves, by uuid; those that the client may not move are left out."""
    uuids = [uuid for move in moves if (uuid := uuid_bytes(move.instance)) is not None]
    pages = (reader.statuses_of(uuids[at : at + _PAGE]) for at in range(0, len(uuids), _PAGE))
    return {status.uuid: status for page in pages for status in page if may_move(status)}


def apply(
    current: Commits,
    body: PlanApplication,
    statuses: Statuses,
    *,
    documents: Documents,
    operation_uuid: bytes,
    now_s: float,
) -> Plan[OperationRow]:
    """Accept a plan. A move without a status fails.

    Raises:
        StoreBroken: the request of an instance is not stored.
    """
    moves = tuple(_add_group(move, find_status(statuses, move), documents) for move in body.moves)
    opens_at_s = find_opening(body.windows, now_s=now_s)
    body = msgspec.structs.replace(body, moves=moves, opens_at_s=opens_at_s)
    operation = OperationRow(
        id=current.new_id("operation"),
        uuid=operation_uuid,
        kind="apply",
        step="move",
        due_at_s=now_s,
        body=msgspec.msgpack.encode(body),
        created_at_s=now_s,
        changed_at_s=now_s,
    )
    events = [line(current, "apply.asked", now_s=now_s, operation_id=operation.id, moves=f"{len(moves):,}")]
    if opens_at_s:
        until = format_opening(opens_at_s)
        events.append(line(current, "apply.waiting", now_s=now_s, operation_id=operation.id, until=until))
    return Plan(answer=operation, work=(Put(operation), *events), reads_work=True)


def rehearse(documents: Documents, moves: Sequence[AppliedMove], statuses: Statuses) -> list[list[Request | Departure]]:
    """Return the acts of the scheduler for each move, in order; none for a move that cannot begin.

    Each move releases its old allocations before the next one.
    """
    return [_acts_of(documents, move, find_status(statuses, move)) for move in moves]


def find_status(statuses: Statuses, move: AppliedMove) -> StatusRow | None:
    """Return the status of the instance of a move."""
    uuid = uuid_bytes(move.instance)
    return None if uuid is None else statuses.get(uuid)


def is_made(move: AppliedMove, status: StatusRow) -> bool:
    """Return whether an instance is at rest on the target of its move already."""
    return bool(move.target) and status.host.lower() == move.target.lower() and not status.operation_id


def refusal_of(move: AppliedMove, status: StatusRow | None) -> str:
    """Return why a move cannot begin; empty: it can."""
    if status is None or status.status == "DELETED":
        return "the instance does not exist"
    if status.host.lower() != move.source.lower():
        place = f"on {status.host}" if status.host else "on no host"
        return f"the instance is {place}, and not on {move.source}"
    method = drain_method(status)
    if method.how is None:
        return method.problem
    if (method.how == "offload") == bool(move.target):
        wanted = f"move to {move.target}" if move.target else "be offloaded"
        return f"an instance in status {status.status} cannot {wanted}"
    return ""


def _add_group(move: AppliedMove, status: StatusRow | None, documents: Documents) -> AppliedMove:
    if status is None:
        return msgspec.structs.replace(move, state="failed", problem="the instance does not exist")
    return msgspec.structs.replace(move, group=group_of(documents, status) or "")


def _acts_of(documents: Documents, move: AppliedMove, status: StatusRow | None) -> list[Request | Departure]:
    if status is None or is_made(move, status) or refusal_of(move, status):
        return []
    if not move.target:
        return [Departure(instance_uuids=(move.instance,))]
    migration = derive_uuid("migration", "dry run", move.instance)
    request = drain_request(documents, status, migration_uuid=migration)
    aim = msgspec.structs.replace(request.destination or Destination(), host=move.target)
    return [msgspec.structs.replace(request, destination=aim), Departure(instance_uuids=(migration,))]
