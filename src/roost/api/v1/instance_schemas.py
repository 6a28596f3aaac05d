"""Instances as the API writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta


class ShownInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance and what it holds."""

    uuid: Annotated[str, Meta(description="Its uuid.")]
    host: Annotated[str, Meta(description="Name of the service that it is on.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    project_id: Annotated[str, Meta(description="Whose it is.")]
    user_id: Annotated[str, Meta(description="Who asked for it.")]
    group: Annotated[str | None, Meta(description="Uuid of its server group.")]
    allocations: Annotated[
        dict[str, dict[str, int]], Meta(description="By uuid of the provider: the amount of each resource class.")
    ]


class InstancesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which instances are shown."""

    host: Annotated[str, Meta(description="Only those on this service.")] = ""
    project: Annotated[str | None, Meta(description="Only those of this project.")] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="So many at most.")] = 100
    cursor: Annotated[Annotated[int, Meta(ge=0, le=2**63 - 1)], Meta(description="next of the page before.")] = 0


class InstancesPage(msgspec.Struct, frozen=True, kw_only=True):
    """Instances, in the order in which they came."""

    instances: list[ShownInstance]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]
