"""Changes by clients in answers, and the query for them."""

from typing import Annotated

import msgspec
from msgspec import Meta

_PAGE = 100
_PAGE_MAX = 1000


class ChangesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which changes to list."""

    object: Annotated[str, Meta(description="Only changes of this object: a name or uuid, as in the changes.")] = ""
    user: Annotated[str, Meta(description="Only changes by this user id.")] = ""
    project: Annotated[str | None, Meta(description="Only changes by clients of this project id.")] = None
    kind: Annotated[
        str, Meta(description="Only this kind, such as host.disable, or all kinds of an object, such as host.")
    ] = ""
    request: Annotated[str, Meta(description="Only changes of this request id.")] = ""
    since: Annotated[float | None, Meta(description="Earliest time, in seconds since the epoch.")] = None
    until: Annotated[float | None, Meta(description="Latest time, in seconds since the epoch.")] = None
    limit: Annotated[int, Meta(description="Maximum number of changes.", ge=1, le=_PAGE_MAX)] = _PAGE
    cursor: Annotated[str, Meta(description="Value of next from the previous page.")] = ""


class ShownChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change by a client."""

    at_s: Annotated[float, Meta(description="Time, in seconds since the epoch.")]
    kind: Annotated[str, Meta(description="The act, such as host.disable.")]
    object: Annotated[str, Meta(description="Name or uuid of the changed object; empty: none.")]
    user_id: Annotated[str, Meta(description="User of the client; empty: the server itself.")]
    project_id: Annotated[str, Meta(description="Project of the client; empty: none.")]
    roles: Annotated[list[str], Meta(description="Roles of the client.")]
    request_id: Annotated[str, Meta(description="Id of the request, as in the log and in the response.")]
    details: Annotated[dict[str, str], Meta(description="Details, such as the reason of a disabled host.")]


class ChangesPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of changes, newest first."""

    changes: list[ShownChange]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this page is the last.")]
