"""Changes by clients: list."""

import math

import msgspec

from roost.api.changes.change_note import KINDS
from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.schemas.changes import ChangesPage, ChangesQuery, ShownChange
from roost.api.v1.wire.decode_body import field_problem
from roost.errors import report_corruption
from roost.model.work.change_query import ChangeQuery
from roost.model.work.work_rows import ChangeRow

_ID_MAX = 2**63


def list_changes(call: Call) -> Response:
    """List the changes by clients, newest first.

    Clients without policy roost:all_projects see only the changes by clients of their own project. Fails with 400 for
    an unknown kind or an invalid cursor.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, ChangesQuery)
    project = call.project
    if project is not None and query.project not in {None, project}:
        return json_response(ChangesPage(changes=[], next=None))
    wanted = ChangeQuery(
        object=query.object,
        user_id=query.user,
        project_id=query.project if project is None else project,
        request_id=query.request,
        kinds=_kinds(query.kind) if query.kind else None,
        since_s=query.since,
        until_s=query.until,
        before=_position(query.cursor) if query.cursor else None,
        newest=query.limit + 1,
    )
    rows = call.agents.reader(call.current).changes(wanted)
    page = rows[: query.limit]
    following = f"{page[-1].at_s!r}_{page[-1].id}" if len(rows) > len(page) else None
    return json_response(ChangesPage(changes=[_show(row) for row in page], next=following))


def _kinds(text: str) -> tuple[str, ...]:
    """Return a kind, or all kinds of an object.

    Raises:
        Problem: 400.
    """
    found = tuple(kind for kind in sorted(KINDS) if kind == text or kind.startswith(f"{text}."))
    if not found:
        nouns = ", ".join(sorted({kind.partition(".")[0] for kind in KINDS}))
        raise field_problem("?kind", f"must be a kind such as host.disable, or one of {nouns}; got {text[:70]!r}")
    return found


def _position(cursor: str) -> tuple[float, int]:
    """Return the time and the id of the last change of a page.

    Raises:
        Problem: 400.
    """
    time, _, number = cursor.partition("_")
    try:
        position = float(time), int(number)
    except ValueError:
        position = math.nan, 0
    if not math.isfinite(position[0]) or not 0 <= position[1] < _ID_MAX:
        raise field_problem("?cursor", "must be the value of next from a page")
    return position


def _show(row: ChangeRow) -> ShownChange:
    with report_corruption(f"change {row.id}"):
        details = msgspec.json.decode(row.body, type=dict[str, str]) if row.body else {}
    return ShownChange(
        at_s=row.at_s,
        kind=row.kind,
        object=row.object,
        user_id=row.user_id,
        project_id=row.project_id,
        roles=row.roles.split(",") if row.roles else [],
        request_id=row.request_id,
        details=details,
    )
