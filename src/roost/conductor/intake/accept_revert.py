"""Accept requests to revert moves."""

from dataclasses import replace

import msgspec

from roost.conductor.intake.accept import act, find_status
from roost.conductor.operation.liveness import check_gone
from roost.conductor.operation.row_changes import make_due, replace_row
from roost.conductor.operation.step import body_of
from roost.model.work.operation import InstanceMove, MoveSettlement
from roost.model.work.work_rows import OperationRow, StatusRow
from roost.placement.write_plan import Plan
from roost.ports import Commits, WorkReader

_MOVES = frozenset({"resize", "migrate"})


def revert(
    current: Commits,
    reader: WorkReader,
    instance_uuid: str,
    *,
    operation_uuid: bytes,
    now_s: float,
    is_lost: bool = False,
) -> Plan[OperationRow] | OperationRow:
    """Accept a revert of a move. If the present host is lost, an open revert stops waiting for it.

    Args:
        is_lost: whether the present host of the instance will not return, and runs nothing.

    Returns:
        The operation; if the present host is lost, an open revert in place of a new one.

    Raises:
        NotFound: there is no such instance.
        Conflict: its status does not allow a revert, or its host is declared lost while its agent is there.
    """
    stored = reader.operation_by_uuid(operation_uuid)
    if stored is not None:
        return stored
    status = find_status(reader, instance_uuid)
    open_revert = _open_revert(reader, status) if is_lost else None
    if open_revert is None:
        body = MoveSettlement(is_lost=is_lost, was_on=not is_lost or _was_on(reader, status))
        plan = act(current, reader, instance_uuid, kind="revert", body=body, operation_uuid=operation_uuid, now_s=now_s)
    else:
        body = msgspec.structs.replace(body_of(open_revert, MoveSettlement), is_lost=True)
        row = msgspec.structs.replace(make_due(open_revert, now_s=now_s), body=msgspec.msgpack.encode(body))
        plan = Plan(answer=row, work=(replace_row(row),), reads_work=True)
    if not is_lost or not isinstance(plan, Plan):
        return plan
    gone = check_gone(reader, status, act="be reverted from a lost host", alternative="revert it normally")
    return replace(plan, work=(*plan.work, *gone))


def _open_revert(reader: WorkReader, status: StatusRow) -> OperationRow | None:
    """Return the open revert of an instance, if it may still wait for the present host."""
    operation = reader.operation(status.operation_id) if status.operation_id else None
    is_one = (
        operation is not None and operation.kind == "revert" and not operation.outcome and not operation.is_cancelled
    )
    return operation if is_one and operation is not None and not body_of(operation, MoveSettlement).is_apart else None


def _was_on(reader: WorkReader, status: StatusRow) -> bool:
    """Return whether an instance ran before its move; True without a record of the move."""
    move = None if status.migration_uuid is None else reader.migration(status.migration_uuid)
    operation = None if move is None else reader.operation(move.operation_id)
    return operation is None or operation.kind not in _MOVES or body_of(operation, InstanceMove).is_on
