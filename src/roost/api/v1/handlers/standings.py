"""Standings of instances: their host and whether they are busy, for agents with remains of these instances."""

from collections.abc import Collection

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.conductor.operation.reconcile import OPEN_MOVES
from roost.model.names import uuid_bytes
from roost.model.work.standing import Holders, Standing, Standings
from roost.model.work.work_rows import StatusRow
from roost.ports import WorkReader


def show(call: Call) -> Response:
    """Show where instances are and whether they are busy; instances without a status are omitted.

    Fails with 403 for a host outside the token's bounds.
    """
    call.require_thread()
    request = call.body
    assert isinstance(request, Holders)
    call.check_host(call.parameter("host"))
    return json_response(Standings(instances=standings_of(request.instances, call.agents.reader(call.current))))


def standings_of(uuids: Collection[str], reader: WorkReader) -> dict[str, Standing]:
    """Return the standings of instances, by uuid as given; instances without a status are omitted."""
    texts = {body: text for text in uuids if (body := uuid_bytes(text)) is not None}
    rows = reader.statuses_of([*texts]) if texts else []
    # A status names its last migration even after the end of that migration.
    moved = [row.uuid for row in rows if row.migration_uuid is not None]
    moves = reader.migrations_of_all(moved) if moved else []
    unsettled = {move.instance_uuid for move in moves if move.status in OPEN_MOVES}
    return {texts[row.uuid]: _standing(row, is_moving=row.uuid in unsettled) for row in rows}


def _standing(row: StatusRow, *, is_moving: bool) -> Standing:
    is_busy = bool(row.operation_id or row.task) or is_moving
    return Standing(is_deleted=row.status == "DELETED", host=row.host, is_busy=is_busy)
