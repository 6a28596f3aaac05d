"""Begin the move of one instance, as a part of a drain or of a plan."""

from collections.abc import Sequence

import msgspec

from roost.conductor.intake import accept, accept_changes
from roost.conductor.intake.accept_drain import How, drain_request
from roost.conductor.operation.row_changes import derive_uuid
from roost.conductor.operation.step import Desk, View
from roost.model.names import uuid_text
from roost.model.request import Destination
from roost.model.work.work_rows import OperationRow, StatusRow
from roost.placement.write_plan import Plan


class _StatusIndex:
    """The status of one instance, for the acceptance of operations."""

    def __init__(self, status: StatusRow) -> None:
        self._status = status

    def operation_by_uuid(self, _uuid: bytes) -> None:
        """Return None: each move is requested once, so the operation of the move does not exist yet."""

    def status(self, uuid: bytes) -> StatusRow | None:
        """Return the status of an instance."""
        return self._status if uuid == self._status.uuid else None

    def open_operations_on(self, _uuids: Sequence[bytes]) -> list[OperationRow]:
        """Return nothing: only the acceptance of a deletion reads the open operations."""
        return []


def begin_departure(view: View, desk: Desk, status: StatusRow, *, how: How, target: str = "") -> Plan[OperationRow]:
    """Plan the operation to take an instance off its host, as a part of the operation in view.

    Args:
        target: the service to move it to; empty: any.

    Raises:
        BadRequest, Conflict: the instance cannot move.
        StoreBroken: its request is not stored.
    """
    part = derive_uuid(how, view.operation.uuid, status.uuid)
    index, uuid, parent_id = _StatusIndex(status), uuid_text(status.uuid), view.operation.id
    if how == "offload":
        plan = accept_changes.offload(
            desk.current, index, uuid, operation_uuid=part, now_s=view.now_s, parent_id=parent_id
        )
    else:
        request = drain_request(desk.document, status, migration_uuid=uuid_text(derive_uuid("migration", part)))
        if target:
            aim = msgspec.structs.replace(request.destination or Destination(), host=target)
            request = msgspec.structs.replace(request, destination=aim)
        plan = accept.move(
            desk.current,
            index,
            uuid,
            kind=how,
            request=request,
            operation_uuid=part,
            now_s=view.now_s,
            decision_uuid=uuid_text(derive_uuid("decision", part)),
            parent_id=parent_id,
        )
    assert isinstance(plan, Plan), "each part is requested once"
    return plan
