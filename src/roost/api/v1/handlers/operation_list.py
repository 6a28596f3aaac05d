"""The list of operations."""

from collections.abc import Iterator, Sequence
from typing import cast

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.handlers.operations import drain_progress, is_visible, problem_of
from roost.api.v1.schemas.operations import ListedOperation, OperationsPage, OperationsQuery
from roost.api.v1.wire.decode_body import field_problem
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.operation import Kind
from roost.model.work.work_rows import OperationRow
from roost.ports import WorkReader

# Maximum number of operations scanned for a page, regardless of the number shown.
_SCAN_MAX = 5_000
_CHUNK = 200


def list_operations(call: Call) -> Response:
    """List operations and their sub-operations, in order of their requests, or the ones that ended last.

    Clients without policy roost:all_projects see only operations on instances of their own project. Fails with 400 for
    an ``instance`` that is not a uuid, or for ``recent`` with an ``instance``, a ``cursor`` or the outcome ``open``.
    """
    call.require_thread()
    query, reader = call.query, call.agents.reader(call.current)
    assert isinstance(query, OperationsQuery)
    can_see_all = call.project is None
    page: list[OperationRow] = []
    last, following = query.cursor, None
    for scanned_count, row in enumerate(_rows(reader, query)):
        if len(page) == query.limit or scanned_count == _SCAN_MAX:
            following = None if query.recent else str(last)
            break
        last = row.id
        if _matches(row, query) and (can_see_all or is_visible(call, reader, row)):
            page.append(row)
    return json_response(OperationsPage(operations=_show_rows(reader, page), next=following))


def _rows(reader: WorkReader, query: OperationsQuery) -> Iterator[OperationRow]:
    """Yield operations by number; with ``recent``, ended ones by the time of their end, newest first."""
    after_id = query.cursor
    if query.recent:
        if query.instance or query.cursor or query.outcome == "open":
            raise field_problem("?recent", "goes neither with an instance, nor with a cursor, nor with outcome=open")
        yield from reader.recent_operations(newest=_SCAN_MAX)
        return
    if query.instance:
        uuid = uuid_bytes(query.instance)
        if uuid is None:
            raise field_problem("?instance", f"{query.instance[:70]!r} is not a valid UUID")
        rows = reader.operations_on(uuid, newest=_SCAN_MAX)
        yield from sorted((row for row in rows if row.id > after_id), key=lambda row: row.id)
        return
    while chunk := reader.operations(after_id=after_id, limit=_CHUNK, is_open=query.outcome == "open"):
        yield from chunk
        after_id = chunk[-1].id


def _matches(row: OperationRow, query: OperationsQuery) -> bool:
    return query.kind in {None, row.kind} and query.outcome in {None, row.outcome or "open"}


def _show_rows(reader: WorkReader, rows: Sequence[OperationRow]) -> list[ListedOperation]:
    uuids = list({row.instance_uuid for row in rows if row.instance_uuid is not None})
    names = {status.uuid: status.name for status in reader.statuses_of(uuids)} if uuids else {}
    parents = list({row.parent_id for row in rows if row.parent_id})
    parent_uuids = {row.id: row.uuid for row in reader.operations_by_id(parents)} if parents else {}
    return [
        ListedOperation(
            uuid=uuid_text(row.uuid),
            kind=cast("Kind", row.kind),
            outcome=row.outcome or "open",
            step=row.step,
            problem=problem_of(row),
            is_cancelled=row.is_cancelled,
            instance=None if row.instance_uuid is None else uuid_text(row.instance_uuid),
            instance_name=names.get(row.instance_uuid or b"", ""),
            parent=uuid_text(parent_uuids[row.parent_id]) if row.parent_id in parent_uuids else None,
            drain=drain_progress(row),
            created_at_s=row.created_at_s,
            changed_at_s=row.changed_at_s,
        )
        for row in rows
    ]
