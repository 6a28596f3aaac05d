"""The status code of every error, and the formats of errors."""

import html
import json
import re
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal

from roost import errors

# The first sentence for each status: the words of WebOb, on which OpenStack clients match.
_PREAMBLES = {
    400: "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    401: "This server could not verify that you are authorized to access the document you requested. "
    "Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how "
    "to supply the credentials required.",
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    408: "The server has waited too long for the request to be sent by the client.",
    409: "There was a conflict when trying to complete your request.",
    413: "The body of your request was too large for this server.",
    414: "The request URI was too long for this server.",
    431: "The request headers were too large for this server.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The server is currently unavailable. Please try again at a later time.",
}
_STATUSES: tuple[tuple[type[errors.RoostError], int], ...] = (
    (errors.BadRequest, 400),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.NoValidHost, 409),
    (errors.Unavailable, 503),
)
# The messages of these errors name files and servers, so only the log has them; clients get ``_DATABASE_TEXT``.
DATABASE_ERRORS = (errors.StoreBroken, errors.StoreBusy, errors.StoreGone, errors.StoreOutdated)
_RETRY_MAX_S = 5
_DATABASE_TEXT = "The database cannot be used now; see the log of the server."
_BREAK = re.compile(r"<br\s*/?>")

# Version headers of a response: the requested version and ``vary``; the version only; none, if it is not known yet.
VersionHeaders = Literal["all", "version", "none"]


class Problem(errors.RoostError):
    """An HTTP error without an error class of its own.

    Args:
        status: the HTTP status.
        text: the error, without the first sentence of the status.
        code: an error code of Placement; empty: the default code.
        preamble: another first sentence; with it, no line ends follow the text.
        headers: further headers.
        more: further members of the error in JSON.
        version_headers: which version headers the response has.
        problem_type: name of the error under /v1; empty: that of its status.
    """

    def __init__(
        self,
        status: int,
        text: str = "",
        *,
        code: str = "",
        preamble: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, str] | None = None,
        version_headers: VersionHeaders = "all",
        problem_type: str = "",
    ) -> None:
        self.status, self.text, self.code, self.preamble = status, text, code, preamble
        self.headers: Mapping[str, str] = headers or {}
        self.more: Mapping[str, str] = more or {}
        self.version_headers: VersionHeaders = version_headers
        self.problem_type = problem_type
        super().__init__(text)


def busy(text: str, limit: str) -> Problem:
    """Return the 503 error for a reached limit, with the name of the limit."""
    return Problem(503, f"{text} (limit placement.{limit}); try again.", headers={"retry-after": "1"})


def problem_of(error: Exception) -> Problem:
    """Return an error as HTTP; an unexpected exception does not reveal its message."""
    if isinstance(error, Problem):
        return error
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            headers: VersionHeaders = "version" if kind is errors.NotFound else "all"
            later = {"retry-after": _retry_after(error)} if kind is errors.Unavailable else {}
            text = _DATABASE_TEXT if isinstance(error, DATABASE_ERRORS) else str(error)
            return Problem(
                status,
                text,
                code=error.code,
                headers=later,
                version_headers=headers,
                problem_type=error.problem_type,
            )
    return Problem(500)


def _retry_after(error: errors.RoostError) -> str:
    """Return the seconds until a retry; after the loss of a database server they are random, to spread the clients."""
    return str(1 + secrets.randbelow(_RETRY_MAX_S)) if isinstance(error, errors.StoreGone) else "1"


def title_of(status: int) -> str:
    """Return the name of a status."""
    return HTTPStatus(status).phrase.replace("Content Too Large", "Request Entity Too Large")


def as_json(problem: Problem, *, request_id: str, has_code: bool) -> bytes:
    """Return an error as JSON.

    Args:
        request_id: of the failed request.
        has_code: whether the requested version has error codes.
    """
    status = problem.status
    if status == HTTPStatus.UNAUTHORIZED:
        message = _format_message(problem, is_escaped=True)
        error: dict[str, object] = {
            "message": message,
            "code": f"{int(status)} {title_of(status)}",
            "title": title_of(status),
        }
        return json.dumps(error).encode()
    error = {"status": status, "title": title_of(status), "detail": detail_of(problem)}
    if has_code:
        error["code"] = problem.code or "placement.undefined_code"
    error["request_id"] = request_id
    return json.dumps({"errors": [{**error, **problem.more}]}).encode()


def as_html(problem: Problem) -> bytes:
    """Return an error as an HTML page."""
    status = f"{problem.status} {title_of(problem.status)}"
    page = (
        f"<html>\n <head>\n  <title>{status}</title>\n </head>\n <body>\n  <h1>{status}</h1>\n"
        f"  {_format_message(problem, is_escaped=True)}\n </body>\n</html>"
    )
    return page.encode("ascii", "xmlcharrefreplace")


def as_text(problem: Problem) -> bytes:
    """Return an error as plain text."""
    return f"{problem.status} {title_of(problem.status)}\n\n{detail_of(problem)}".encode(errors="backslashreplace")


def detail_of(problem: Problem) -> str:
    """Return the message as one line without markup."""
    one_line = _format_message(problem, is_escaped=False).replace("\n", " ").replace("\r", "")
    return _strip_tags(_BREAK.sub("\n", one_line))


def _strip_tags(text: str) -> str:
    """Remove comments within one line, and other text between < and >.

    One pass only: clients may send megabytes of unclosed tags, and errors quote them.
    """
    parts, at = [], 0
    comment_end, line_end, mark_end_last = 0, 0, text.rfind(">")
    while 0 <= (start := text.find("<", at)) < mark_end_last:
        parts.append(text[at:start])
        at = text.find(">", start) + 1
        inside = start + len("<!--")
        if text.startswith("<!--", start):
            if 0 <= comment_end < inside:
                comment_end = text.find("-->", inside)
            if 0 <= line_end < inside:
                line_end = text.find("\n", inside)
            if comment_end >= 0 and not 0 <= line_end < comment_end:
                at = comment_end + len("-->")
    parts.append(text[at:])
    return "".join(parts)


def _format_message(problem: Problem, *, is_escaped: bool) -> str:
    text, preamble = problem.text, problem.preamble
    after = "" if preamble is not None else "\n\n"
    if preamble is None:
        preamble = _PREAMBLES.get(problem.status, title_of(problem.status))
    if is_escaped:
        text, preamble = html.escape(text), html.escape(preamble)
    return f"{preamble}<br /><br />\n{text}{after}"
