"""Errors as RFC 9457 problem details."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.problems import Problem, title_of
from roost.api.v1.wire.problem_types import type_of

CONTENT_TYPE = "application/problem+json"


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error."""

    type: Annotated[str, Meta(description="Kind of the error, for programs; GET /v1/errors explains all of them.")]
    title: Annotated[str, Meta(description="Name of the status.")]
    status: Annotated[int, Meta(description="HTTP status.")]
    detail: Annotated[str, Meta(description="Description of the error, in one sentence.")]
    request_id: Annotated[str, Meta(description="Id of the request, as in the log.")]
    field: Annotated[
        str, Meta(description="Place of the error in the request: a JSON path into the body, or ?name of a parameter.")
    ] = ""
    missing: Annotated[
        str, Meta(description="Kind of the object, such as flavor, if the field names one that does not exist.")
    ] = ""
    needed_roles: Annotated[
        tuple[str, ...],
        Meta(description="Roles of the default policies, one of which would allow the refused request."),
    ] = ()
    auth_strategy: Annotated[
        str, Meta(description="With status 401, the authentication of the server: noauth2, tokens or keystone.")
    ] = ""


def as_json(problem: Problem, *, request_id: str, auth_strategy: str = "") -> bytes:
    """Encode an error as problem details."""
    title = title_of(problem.status)
    details = ProblemDetails(
        type=type_of(problem),
        title=title,
        status=problem.status,
        detail=problem.text or title,
        request_id=request_id,
        field=problem.more.get("field", ""),
        missing=problem.more.get("missing", ""),
        needed_roles=tuple(filter(None, problem.more.get("needed_roles", "").split(","))),
        auth_strategy=auth_strategy,
    )
    return msgspec.json.encode(details)
