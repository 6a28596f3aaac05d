"""Errors as RFC 9457 problem details."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.problems import Problem, title_of

CONTENT_TYPE = "application/problem+json"
# Of errors of which only the status says what to do.
_NO_TYPE = "about:blank"


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong."""

    type: Annotated[str, Meta(description="about:blank: the status says what to do.")]
    title: Annotated[str, Meta(description="The name of the status.")]
    status: Annotated[int, Meta(description="Of HTTP.")]
    detail: Annotated[str, Meta(description="What is wrong, in a sentence.")]
    request_id: Annotated[str, Meta(description="Of the request, as the log has it.")]
    field: Annotated[
        str, Meta(description="Where in the request that is: a JSON path into the body, or ?name of a parameter.")
    ] = ""


def as_json(problem: Problem, *, request_id: str) -> bytes:
    """Return an error as programs read it."""
    title = title_of(problem.status)
    details = ProblemDetails(
        type=_NO_TYPE,
        title=title,
        status=problem.status,
        detail=problem.text or title,
        request_id=request_id,
        field=problem.more.get("field", ""),
    )
    return msgspec.json.encode(details)
