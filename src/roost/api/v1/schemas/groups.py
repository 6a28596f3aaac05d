"""Server groups in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery
from roost.model.group import GroupPolicy
from roost.model.names import AMOUNT_MAX

_LIMIT = "anti-affinity only: maximum number of members on one host."


class GroupsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page and the filters of a query for server groups."""

    name: Annotated[str, Meta(description="Only groups with this name.")] = ""
    policy: Annotated[GroupPolicy | None, Meta(description="Only groups with this policy.")] = None


class GroupBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new server group."""

    name: Annotated[Annotated[str, Meta(min_length=1, max_length=255)], Meta(description="Name of the group.")]
    policy: Annotated[GroupPolicy, Meta(description="Placement rule for its members.")]
    max_server_per_host: Annotated[
        Annotated[int, Meta(ge=1, le=AMOUNT_MAX)] | None, Meta(description=_LIMIT + " null: 1.")
    ] = None
    uuid: Annotated[str | None, Meta(description="Uuid; null: the server generates one.")] = None


class ShownGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A server group."""

    uuid: Annotated[str, Meta(description="Uuid of the group.")]
    name: Annotated[str, Meta(description="Name of the group.")]
    policy: Annotated[GroupPolicy, Meta(description="Placement rule for its members.")]
    max_server_per_host: Annotated[int, Meta(description=_LIMIT)]
    member_count: Annotated[int, Meta(description="Number of members that the client may see.")]


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a server group."""

    instance_uuid: Annotated[str, Meta(description="Uuid of the instance.")]
    name: Annotated[str, Meta(description="Name of the instance; empty: a mere claim.")]
    host: Annotated[str, Meta(description="Name of the service.")]
    node: Annotated[str, Meta(description="Name of the node.")]


class DetailedGroup(ShownGroup, frozen=True, kw_only=True):
    """A server group and its members."""

    members: Annotated[list[GroupMember], Meta(description="Members in order of arrival.")]


class GroupsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of server groups, in order of creation."""

    groups: list[ShownGroup]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]
