"""New operations, and their locks on instances."""

import msgspec

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.conductor.operation.step import Body
from roost.conductor.operation.story import line
from roost.model.work.operation import TASKS, Kind
from roost.model.work.work_rows import OperationRow, Put, StatusRow
from roost.ports import Commits


def new_operation(
    current: Commits,
    status: StatusRow,
    *,
    kind: Kind,
    body: Body,
    operation_uuid: bytes,
    now_s: float,
    step: str = "send",
    parent_id: int = 0,
) -> OperationRow:
    """Return a new operation on an instance.

    Args:
        body: the operation's input; its type must fit ``kind``.
        step: the first step.
        parent_id: id of the parent operation; 0: none.
    """
    return OperationRow(
        id=current.new_id("operation"),
        uuid=operation_uuid,
        kind=kind,
        instance_uuid=status.uuid,
        turn=status.version + 1,
        parent_id=parent_id,
        cell=status.cell,
        step=step,
        due_at_s=now_s,
        body=msgspec.msgpack.encode(body),
        created_at_s=now_s,
        changed_at_s=now_s,
    )


def lock_instance(current: Commits, operation: OperationRow, status: StatusRow) -> tuple[Put, ...]:
    """Return the rows that store a new operation, lock its instance and record the request."""
    task = TASKS[operation.kind]
    locked = next_version(status, task=task, operation_id=operation.id, changed_at_s=operation.created_at_s)
    return Put(operation), replace_row(locked), request_line(current, operation)


def request_line(current: Commits, operation: OperationRow) -> Put:
    """Return the row that records the request in the story of the operation."""
    return line(
        current,
        f"{operation.kind}.asked",
        now_s=operation.created_at_s,
        instance_uuid=operation.instance_uuid,
        operation_id=operation.id,
    )
