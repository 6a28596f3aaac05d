"""The problem types of ``/v1``: stable names of errors, on which clients match."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.problems import Problem, title_of

PATH = "/errors"
# A type is a reference to its entry in this document, which the server itself returns.
_REFERENCE = f"/v1{PATH}#"
_FAULT = "server-fault"


class ProblemType(msgspec.Struct, frozen=True, kw_only=True):
    """One type of problems."""

    type: Annotated[str, Meta(description="The member type of the error.")]
    status: Annotated[int, Meta(description="HTTP status.")]
    title: Annotated[str, Meta(description="Name of the status.")]
    explanation: Annotated[str, Meta(description="Meaning of the error, and what to do.")]


class ProblemTypes(msgspec.Struct, frozen=True, kw_only=True):
    """All types of problems."""

    problem_types: Annotated[list[ProblemType], Meta(description="The types, by status.")]


# Status and explanation of each type, by its name. The first type of a status is the default for that status.
TYPES: Mapping[str, tuple[int, str]] = {
    "bad-request": (400, "The request is invalid. Fix it, and send it again."),
    "invalid-field": (400, "A field of the body, or a parameter, is invalid; field names it. Fix it."),
    "missing-reference": (400, "A field names an object that does not exist; missing has its kind. Create the object."),
    "unauthenticated": (401, "The token is missing or unknown. Send a valid token."),
    "forbidden": (403, "A policy, or the bounds of the token, deny the request. Use another token."),
    "not-found": (404, "The object or the path does not exist. Use another name."),
    "state-lost": (404, "The decision is stored, but its state is not. It cannot be explained or replayed."),
    "metric-missing": (404, "A host does not report a metric that the weighers require."),
    "method-not-allowed": (405, "The path has no such method; the header allow lists its methods."),
    "request-timeout": (408, "The request arrived too slowly; detail names the limit."),
    "conflict": (409, "The current state does not permit the request; detail has the reason."),
    "already-exists": (409, "An object with this name or UUID exists. An earlier attempt may have succeeded."),
    "lost-race": (409, "Concurrent changes won, and nothing was written. Send the request again."),
    "choice-changed": (409, "The fleet has changed since the dry run. Repeat the dry run."),
    "no-alternate": (409, "The decision has no alternate left. Make a new decision."),
    "no-valid-host": (409, "No host fits now. Free resources, add hosts, or request less."),
    "wrong-status": (409, "The operation is not possible in the status of the instance. Read the instance again."),
    "not-supported": (409, "This server cannot do this with its remote Placement or database."),
    "body-too-large": (413, "The body is longer than a limit, which detail names."),
    "url-too-long": (414, "The URL is longer than a limit, which detail names."),
    "unsupported-media-type": (415, "The body is not declared as JSON. Send the header content-type."),
    "wrong-host": (421, "The header host is not a name of this server. Correct the URL, or the setting in detail."),
    "key-reused": (422, "The idempotency key belongs to another request. Choose a new key."),
    "headers-too-large": (431, "The headers are longer than a limit, which detail names."),
    _FAULT: (500, "The server has a bug. Report it, with the lines of its log for the request_id."),
    "unavailable": (503, "The server cannot answer now. Retry after the seconds in the header retry-after."),
    "over-budget": (503, "The work on the request exceeds a limit, which detail names. Request less at once."),
    "database-unavailable": (503, "The database cannot be used now. Retry, and read the log of the server."),
    "placement-unavailable": (503, "The remote Placement cannot be used now. Retry later."),
}
_DEFAULTS: Mapping[int, str] = {status: name for name, (status, _) in reversed([*TYPES.items()])}


def type_of(problem: Problem) -> str:
    """Return the type of an error, as a reference."""
    name = problem.problem_type
    if not name and problem.more:
        name = "missing-reference" if "missing" in problem.more else "invalid-field" if "field" in problem.more else ""
    if TYPES.get(name, (None, ""))[0] != problem.status:
        name = _DEFAULTS.get(problem.status, "bad-request" if problem.status < 500 else _FAULT)
    return _REFERENCE + name


@cache
def body() -> bytes:
    """Return all types as JSON."""
    types = [
        ProblemType(type=_REFERENCE + name, status=status, title=title_of(status), explanation=explanation)
        for name, (status, explanation) in TYPES.items()
    ]
    return msgspec.json.encode(ProblemTypes(problem_types=types))
