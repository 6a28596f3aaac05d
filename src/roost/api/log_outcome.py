"""The log lines of changes by clients, of browser sessions, and of refused clients."""

from http import HTTPStatus

from roost.api.changes.change_note import ChangeNote
from roost.api.http import Identity, Request, Response
from roost.observe import log

_SIGN_IN = "/v1/session"
# Characters of a path or problem in a line.
_TEXT_MAX = 300
# Maximum number of objects in a line.
_OBJECTS_MAX = 10


def log_outcome(request: Request, response: Response) -> None:
    """Log the change of a request, the session that it begins, and the refusal of its client, if any."""
    if response.status in {401, 403}:
        _log_refusal(request, is_known=response.status == 403)
    elif request.change is not None:
        _log_change(request, request.change, response.status)
    elif response.status == HTTPStatus.CREATED and request.route == _SIGN_IN:
        fields = {"client": request.client or None, **_who(request.identity), "request_id": request.request_id}
        log.write("session_begins", fields)


def _log_refusal(request: Request, *, is_known: bool) -> None:
    fields = {
        "method": request.method,
        "path": (request.prefix + request.path)[:_TEXT_MAX],
        "client": request.client or None,
        **(_who(request.identity) if is_known else {}),
        "problem": request.problem[:_TEXT_MAX] or None,
        "request_id": request.request_id,
    }
    log.write("access_refused" if is_known else "login_refused", fields)


def _log_change(request: Request, note: ChangeNote, status: int) -> None:
    fields = {
        "kind": note.kind,
        "object": ", ".join(note.objects[:_OBJECTS_MAX]) or None,
        **({"objects": len(note.objects)} if len(note.objects) > _OBJECTS_MAX else {}),
        "result": _result_of(status, is_write=request.is_write),
        "status": status,
        **_who(request.identity),
        "request_id": request.request_id,
        **({"problem": request.problem[:_TEXT_MAX] or None} if status >= 400 else {}),
    }
    details = {name: text[:_TEXT_MAX] for name, text in note.details.items() if name not in fields}
    log.write("change", {**fields, **details}, level="warning" if status >= 500 else "info")


def _result_of(status: int, *, is_write: bool) -> str:
    if status >= 400:
        return "refused" if status < 500 else "failed"
    return "done" if is_write else "unchanged"


def _who(identity: Identity | None) -> dict[str, str | None]:
    """Return user, project and roles of a client."""
    if identity is None:
        return {"user": None}
    roles = ",".join(sorted(identity.roles)) or None
    return {"user": identity.user_id, "project": identity.project_id or None, "roles": roles}
