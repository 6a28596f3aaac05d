"""Instances as the API reads and writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.schemas.decisions import InstanceRequestBody
from roost.api.v1.schemas.migrations import InstanceMigration
from roost.api.v1.schemas.operations import ShownEvent
from roost.conductor.intake.accept import INSTANCES_MAX, NAME_MAX
from roost.model.documents.request_document import FlavorEntry
from roost.model.work.builds import Attempt
from roost.model.work.operation import Status


class InstancesBody(InstanceRequestBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for equal instances that are to run."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=NAME_MAX)],
        Meta(description="Of the instance; of several the first has it, the next ones end in -2, -3 and so on."),
    ]
    count: Annotated[
        Annotated[int, Meta(ge=1, le=INSTANCES_MAX)], Meta(description="How many: all of them get a host, or none.")
    ] = 1


class AcceptedInstances(msgspec.Struct, frozen=True, kw_only=True):
    """Instances that are to run."""

    operation: Annotated[str, Meta(description="Uuid of what builds them.")]
    instances: Annotated[list[str], Meta(description="Their uuids.")]


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked is going to be done."""

    operation: Annotated[str, Meta(description="Uuid of what does it.")]


class RebuildBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From what an instance is built anew."""

    image: Annotated[str | None, Meta(description="The name of a stored image; null: the one that it has.")] = None


class DeleteQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an instance ends."""

    force: Annotated[
        bool,
        Meta(
            description="Whether it gives back what it holds before its host got rid of it, which it does whenever it "
            "can; for admin."
        ),
    ] = False


class ResizeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size that an instance is to have."""

    flavor: Annotated[
        FlavorEntry | str,
        Meta(description="The size, or the name of a flavor: stored, or that decisions were made for."),
    ]


class MigrateBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an instance goes that is stopped on the way."""

    host: Annotated[
        str | None, Meta(description="Name of the service that it goes to, if filters keep that; null: any.")
    ] = None
    verify: Annotated[bool, Meta(description="Whether it waits there to be confirmed or reverted.")] = False


class RevertBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an instance goes back to where a move took it from."""

    lost: Annotated[
        bool,
        Meta(description="Whether the host that it is on is lost, and runs nothing; for admin."),
    ] = False


class ShownInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance and what it holds."""

    uuid: Annotated[str, Meta(description="Its uuid.")]
    name: Annotated[str, Meta(description="Its name; empty where nobody was asked to run it, so for task and fault.")]
    status: Annotated[Status | None, Meta(description="null: it is a claim, and nobody was asked to run it.")]
    task: Annotated[str, Meta(description="What is being done to it; empty: nothing.")]
    fault: Annotated[str, Meta(description="Why it is in ERROR, or why the last thing asked of it was not done.")]
    operation: Annotated[str | None, Meta(description="Uuid of what does it; null: nothing does.")]
    host: Annotated[str, Meta(description="Name of the service that it is on; empty: it is on none.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    project_id: Annotated[str, Meta(description="Whose it is.")]
    user_id: Annotated[str, Meta(description="Who asked for it.")]
    group: Annotated[str | None, Meta(description="Uuid of its server group.")]
    allocations: Annotated[
        dict[str, dict[str, int]], Meta(description="By uuid of the provider: the amount of each resource class.")
    ]
    decision: Annotated[str | None, Meta(description="Uuid of the decision that chose its host, where that is known.")]
    created_at_s: Annotated[
        float | None, Meta(description="When it was asked for, in seconds since the epoch, where that is known.")
    ]
    changed_at_s: Annotated[float | None, Meta(description="When its status or task changed, likewise.")]


class InstanceOperation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was asked of an instance."""

    uuid: Annotated[str, Meta(description="Of the operation.")]
    kind: Annotated[str, Meta(description="Such as spawn, delete, start.")]
    outcome: Annotated[str, Meta(description="open, done or failed.")]
    created_at_s: Annotated[float, Meta(description="When it was asked, in seconds since the epoch.")]


class DetailedInstance(ShownInstance, frozen=True, kw_only=True):
    """An instance, what it holds, and how it came to be what it is."""

    attempts: Annotated[
        list[Attempt],
        Meta(
            description="The hosts that it was to be built on, in order; problem says why that was not done, and is "
            "empty in the last one while it is being built, and when it was."
        ),
    ]
    operations: Annotated[list[InstanceOperation], Meta(description="What was asked of it, newest first.")]
    migrations: Annotated[list[InstanceMigration], Meta(description="Its moves from host to host, oldest first.")]
    story: Annotated[list[ShownEvent], Meta(description="What happened to it, oldest first.")]


class InstancesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which instances are shown."""

    host: Annotated[str, Meta(description="Only those on this service.")] = ""
    project: Annotated[str | None, Meta(description="Only those of this project.")] = None
    name: Annotated[str, Meta(description="Only those of this name.")] = ""
    status: Annotated[
        Status | None, Meta(description="Only those in this status; those that are deleted are shown only so.")
    ] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="So many at most.")] = 100
    cursor: Annotated[
        str,
        Meta(pattern="^([0-9]{1,18}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$(?!\n)"),
        Meta(description="next of the page before."),
    ] = ""


class InstancesPage(msgspec.Struct, frozen=True, kw_only=True):
    """Instances in the order in which they were asked for, then those that nobody was asked to run."""

    instances: list[ShownInstance]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]
