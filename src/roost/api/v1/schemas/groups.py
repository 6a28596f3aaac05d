"""Server groups as the API reads and writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery
from roost.model.group import GroupPolicy
from roost.model.names import AMOUNT_MAX

_LIMIT = "anti-affinity only: so many members may be on one host."


class GroupsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which server groups are shown."""

    name: Annotated[str, Meta(description="Only those of this name.")] = ""
    policy: Annotated[GroupPolicy | None, Meta(description="Only those of this policy.")] = None


class GroupBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server group that is to come to be."""

    name: Annotated[Annotated[str, Meta(min_length=1, max_length=255)], Meta(description="Its name.")]
    policy: Annotated[GroupPolicy, Meta(description="What its members want of each other.")]
    max_server_per_host: Annotated[
        Annotated[int, Meta(ge=1, le=AMOUNT_MAX)] | None, Meta(description=_LIMIT + " null: 1.")
    ] = None
    uuid: Annotated[str | None, Meta(description="Its uuid; null: one is made.")] = None


class ShownGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A server group."""

    uuid: Annotated[str, Meta(description="Its uuid.")]
    name: Annotated[str, Meta(description="Its name.")]
    policy: Annotated[GroupPolicy, Meta(description="What its members want of each other.")]
    max_server_per_host: Annotated[int, Meta(description=_LIMIT)]
    member_count: Annotated[int, Meta(description="How many members it has.")]


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a server group."""

    instance_uuid: Annotated[str, Meta(description="The instance.")]
    host: Annotated[str, Meta(description="Name of the service that it is on.")]
    node: Annotated[str, Meta(description="Name of the node.")]


class DetailedGroup(ShownGroup, frozen=True, kw_only=True):
    """A server group and its members."""

    members: Annotated[list[GroupMember], Meta(description="In the order in which they came.")]


class GroupsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Server groups, in the order in which they came."""

    groups: list[ShownGroup]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]
