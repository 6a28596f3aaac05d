"""Records of changes: the client and the objects of a plan or an act."""

from dataclasses import replace
from itertools import islice

import msgspec

from roost.api.changes.change_note import ChangeNote
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.work.work_rows import ChangeRow, EventRow, OperationRow, Put
from roost.placement.current import Current
from roost.placement.write_plan import Act, Answer, Deed, Plan

# Maximum number of records of one request; each record names one object.
_OBJECTS_MAX = 1000
# Characters of a name or detail in a record.
_TEXT_MAX = 300
# Maximum number of details of one object.
_DETAILS_MAX = 20
_encode = msgspec.json.Encoder().encode


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """The client of a change."""

    user_id: str = ""  # empty: the server itself
    project_id: str = ""
    roles: frozenset[str] = frozenset()
    request_id: str = ""


def sign_plan(plan: Plan[Answer], note: ChangeNote, author: Author, *, current: Current) -> Plan[Answer]:
    """Return a plan with records of its change; its new operations and story lines name the author, too."""
    if not plan.has_writes:
        return plan
    work = tuple(_sign(put, author) for put in plan.work)
    return replace(plan, work=work, trail=rows_of(note, author, current=current))


def sign_act(act: Act[Answer], note: ChangeNote, author: Author, *, current: Current) -> Act[Answer]:
    """Return an act with a record of its change; a decision completes the record. Drop the act on an error."""
    try:
        records = rows_of(note, author, current=current)
    except BaseException:
        act.on_drop()
        raise
    return replace(act, deed=_sign_deed(act.deed, records))


def rows_of(note: ChangeNote, author: Author, *, current: Current) -> tuple[ChangeRow, ...]:
    """Return one record per changed object."""
    details = {name: text[:_TEXT_MAX] for name, text in note.details.items()}
    if len(note.objects) > _OBJECTS_MAX:
        details["objects"] = f"{len(note.objects):,}"
    roles = ",".join(sorted(author.roles))[:_TEXT_MAX]
    return tuple(
        ChangeRow(
            id=current.new_id("change"),
            at_s=current.state.now_s,
            kind=note.kind,
            object=name[:_TEXT_MAX],
            user_id=author.user_id,
            project_id=author.project_id,
            roles=roles,
            request_id=author.request_id,
            body=_body_of({**details, **_own_details(note, name)}),
        )
        for name in note.objects[:_OBJECTS_MAX] or ("",)
    )


def _own_details(note: ChangeNote, name: str) -> dict[str, str]:
    """Return the details of one object, shortened to the first ones."""
    own = note.object_details.get(name, {})
    shown = {key[:_TEXT_MAX]: text[:_TEXT_MAX] for key, text in islice(own.items(), _DETAILS_MAX)}
    more = len(own) - len(shown)
    return {**shown, "more": f"{more:,}"} if more else shown


def _body_of(details: dict[str, str]) -> bytes:
    return _encode(details) if details else b""


def _sign(put: Put, author: Author) -> Put:
    """Return new operations and story lines with their author; other work stays."""
    match put.row:
        case OperationRow() as row if put.expected is None:
            signed = msgspec.structs.replace(
                row, user_id=author.user_id, project_id=author.project_id, request_id=author.request_id
            )
            return Put(signed)
        case EventRow() as row:
            details = msgspec.json.decode(row.body, type=dict[str, str]) if row.body else {}
            who = {"user": author.user_id, "project": author.project_id, "request_id": author.request_id}
            body = _encode({**details, **{name: text for name, text in who.items() if text}})
            return Put(msgspec.structs.replace(row, body=body))
    return put


def _sign_deed(deed: Deed, rows: tuple[ChangeRow, ...]) -> Deed:
    match deed:
        case Request():
            return NamedRequest(request=deed, change=rows[0])
        case NamedRequest():
            return msgspec.structs.replace(deed, change=rows[0])
        case Departure():
            return msgspec.structs.replace(deed, trail=rows)
