"""Instances in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.schemas.decisions import InstanceRequestBody
from roost.api.v1.schemas.migrations import InstanceMigration
from roost.api.v1.schemas.operations import ShownEvent
from roost.api.v1.wire.pages import FIELDS_TEXT
from roost.model.documents.request_document import FlavorEntry
from roost.model.work.builds import Attempt
from roost.model.work.operation import INSTANCES_MAX, NAME_MAX, Status


class InstancesBody(InstanceRequestBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to boot identical instances."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=NAME_MAX)],
        Meta(description="Name of the first instance; further instances have it with the suffix -2, -3 and so on."),
    ]
    count: Annotated[
        Annotated[int, Meta(ge=1, le=INSTANCES_MAX)],
        Meta(description="Number of instances; all of them get a host, or none."),
    ] = 1


class AcceptedInstances(msgspec.Struct, frozen=True, kw_only=True):
    """The operation that builds new instances."""

    operation: Annotated[str, Meta(description="Uuid of the build operation.")]
    instances: Annotated[list[str], Meta(description="Uuids of the instances.")]
    warnings: Annotated[list[str], Meta(description="Invalid extra specs and hints without effect, one sentence each.")]


class OperationReference(msgspec.Struct, frozen=True, kw_only=True):
    """The operation that does the requested work."""

    operation: Annotated[str, Meta(description="Uuid of the operation.")]


class RebuildBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The image of a rebuild."""

    image: Annotated[
        str | None, Meta(description="Name of a stored image; null: the current image of the instance.")
    ] = None


class DeleteQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a deletion."""

    force: Annotated[
        bool,
        Meta(
            description="Whether to release its resources before its host has removed the guest; the host removes it "
            "as soon as it can. Requires policy roost:instances:delete:force."
        ),
    ] = False


class ResizeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new flavor of an instance."""

    flavor: Annotated[
        FlavorEntry | str,
        Meta(description="The flavor, or the name of a stored flavor or one in a stored decision."),
    ]


class MigrateBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of a cold migration."""

    host: Annotated[
        str | None, Meta(description="Service of the target host, which must pass the filters; null: any host.")
    ] = None
    verify: Annotated[
        bool, Meta(description="Whether the instance waits on the target for a confirmation or revert.")
    ] = False


class RevertBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a revert."""

    lost: Annotated[
        bool,
        Meta(
            description="Whether the current host of the instance is lost and runs no guests. Requires policy "
            "roost:instances:revert:lost."
        ),
    ] = False


class ShownInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance and its allocations."""

    uuid: Annotated[str, Meta(description="Uuid of the instance.")]
    name: Annotated[str, Meta(description="Name; a mere claim has an empty name, task and fault.")]
    status: Annotated[Status | None, Meta(description="Status; null: a mere claim, which no host runs.")]
    task: Annotated[str, Meta(description="Current task; empty: none.")]
    fault: Annotated[str, Meta(description="Reason of the status ERROR, or of the failure of the last operation.")]
    operation: Annotated[str | None, Meta(description="Uuid of the current operation; null: none.")]
    host: Annotated[str, Meta(description="Name of its service; empty: it is on no host.")]
    node: Annotated[str, Meta(description="Name of the node.")]
    project_id: Annotated[str, Meta(description="Project that owns it.")]
    user_id: Annotated[str, Meta(description="User that requested it.")]
    group: Annotated[str | None, Meta(description="Uuid of its server group.")]
    allocations: Annotated[
        dict[str, dict[str, int]], Meta(description="Amount of each resource class, by provider uuid.")
    ]
    decision: Annotated[str | None, Meta(description="Uuid of the decision that chose its host, if known.")]
    created_at_s: Annotated[
        float | None, Meta(description="Time of its request, in seconds since the epoch, if known.")
    ]
    changed_at_s: Annotated[
        float | None,
        Meta(description="Time of the last change of status or task, in seconds since the epoch, if known."),
    ]


class InstanceOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation on an instance."""

    uuid: Annotated[str, Meta(description="Uuid of the operation.")]
    kind: Annotated[str, Meta(description="Kind, such as spawn, delete or start.")]
    outcome: Annotated[str, Meta(description="open, done or failed.")]
    created_at_s: Annotated[float, Meta(description="Time of the request, in seconds since the epoch.")]


class DetailedInstance(ShownInstance, frozen=True, kw_only=True):
    """An instance with its allocations and history."""

    group_name: Annotated[str | None, Meta(description="Name of its server group; null: it has no group.")]
    provider_names: Annotated[dict[str, str], Meta(description="Names of the providers of its allocations, by uuid.")]
    attempts: Annotated[
        list[Attempt],
        Meta(
            description="Hosts of its build attempts, in order; problem is the reason of a failure, and is empty for "
            "the current attempt and for a successful one."
        ),
    ]
    operations: Annotated[list[InstanceOperation], Meta(description="Its latest operations, newest first.")]
    migrations: Annotated[list[InstanceMigration], Meta(description="Its migrations, oldest first.")]
    story: Annotated[list[ShownEvent], Meta(description="Its latest events, oldest first.")]


class InstancesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of instances, and their filters."""

    host: Annotated[str, Meta(description="Only instances on this service.")] = ""
    project: Annotated[str | None, Meta(description="Only instances of this project.")] = None
    name: Annotated[
        str, Meta(description="Only instances with this name; with * at the end: whose name begins so.")
    ] = ""
    status: Annotated[
        Status | None, Meta(description="Only instances in this status; without it, deleted instances are omitted.")
    ] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="Maximum number of instances.")] = 100
    cursor: Annotated[
        str,
        Meta(pattern="^([0-9]{1,18}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$(?!\n)"),
        Meta(description="The value next of the previous page."),
    ] = ""
    fields: Annotated[str, Meta(description=FIELDS_TEXT)] = ""


class InstancesPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of instances in order of their requests, then of mere claims."""

    instances: list[ShownInstance]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]
