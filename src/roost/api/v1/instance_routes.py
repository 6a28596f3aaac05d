"""Routes of instances, their operations and their migrations."""

from collections.abc import Mapping

from roost.api.v1.handlers import (
    drain,
    instance_acts,
    instance_changes,
    instance_live,
    instance_moves,
    instances,
    migrations,
    operation_list,
    operations,
)
from roost.api.v1.route import Route
from roost.api.v1.schemas.instances import (
    AcceptedInstances,
    DeleteQuery,
    DetailedInstance,
    InstancesBody,
    InstancesPage,
    InstancesQuery,
    MigrateBody,
    OperationReference,
    RebuildBody,
    ResizeBody,
    RevertBody,
)
from roost.api.v1.schemas.migrations import MigrationsPage, MigrationsQuery, ShownMigration, TargetBody
from roost.api.v1.schemas.operations import OperationQuery, OperationsPage, OperationsQuery, ShownOperation

# Life cycle of instances, moves with confirmation, and operations.
_RUNNING: Mapping[str, Mapping[str, Route]] = {
    "/instances": {
        "GET": Route(
            handler=instances.list_instances,
            about="List instances.",
            query=InstancesQuery,
            answer=InstancesPage,
            work="list",
        ),
        "POST": Route(
            handler=instance_acts.create,
            about="Boot instances.",
            body=InstancesBody,
            answer=AcceptedInstances,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}": {
        "GET": Route(
            handler=instances.show,
            about="Show an instance with its attempts, operations, migrations and story.",
            answer=DetailedInstance,
        ),
        "DELETE": Route(
            handler=instance_acts.delete,
            about="Delete an instance, or release a claim at once.",
            query=DeleteQuery,
            answer=None,
            status=204,
            later=OperationReference,
            is_keyed=True,
        ),
    },
    "/instances/{id}/start": {
        "POST": Route(
            handler=instance_acts.start,
            about="Start a stopped instance.",
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/stop": {
        "POST": Route(
            handler=instance_acts.stop,
            about="Stop an instance.",
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/resize": {
        "POST": Route(
            handler=instance_moves.resize,
            about="Resize an instance.",
            body=ResizeBody,
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/migrate": {
        "POST": Route(
            handler=instance_moves.migrate,
            about="Cold-migrate an instance to another host.",
            body=MigrateBody,
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/confirm": {
        "POST": Route(
            handler=instance_moves.confirm,
            about="Confirm a resize or a migration.",
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/revert": {
        "POST": Route(
            handler=instance_moves.revert,
            about="Revert a resize or a migration.",
            body=RevertBody,
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/operations": {
        "GET": Route(
            handler=operation_list.list_operations,
            about="List operations.",
            query=OperationsQuery,
            answer=OperationsPage,
            work="list",
        ),
    },
    "/operations/{id}": {
        "GET": Route(
            handler=operations.show,
            about="Show an operation, optionally waiting for its end.",
            query=OperationQuery,
            answer=ShownOperation,
        ),
        "DELETE": Route(
            handler=drain.cancel,
            about="Cancel a drain; moves in progress complete.",
            answer=OperationReference,
            status=202,
        ),
    },
    "/operations/{id}/pause": {
        "POST": Route(
            handler=drain.pause,
            about="Pause a drain; moves in progress complete.",
            answer=OperationReference,
            status=202,
        ),
    },
    "/operations/{id}/resume": {
        "POST": Route(
            handler=drain.resume,
            about="Resume a paused drain.",
            answer=OperationReference,
            status=202,
        ),
    },
}

# Changes in place, and shelving.
_CHANGING: Mapping[str, Mapping[str, Route]] = {
    "/instances/{id}/rebuild": {
        "POST": Route(
            handler=instance_changes.rebuild,
            about="Rebuild an instance from an image.",
            body=RebuildBody,
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/shelve": {
        "POST": Route(
            handler=instance_changes.shelve,
            about="Shelve an instance: save its disk and stop it.",
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/offload": {
        "POST": Route(
            handler=instance_changes.offload,
            about="Offload a shelved instance from its host.",
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/unshelve": {
        "POST": Route(
            handler=instance_changes.unshelve,
            about="Unshelve an instance.",
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/reboot": {
        "POST": Route(
            handler=instance_changes.reboot,
            about="Reboot an instance.",
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/reset": {
        "POST": Route(
            handler=instance_changes.reset,
            about="Reset an instance in ERROR to the state that its host reports.",
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
}

# Live migration, evacuation, and migration records.
_MOVING: Mapping[str, Mapping[str, Route]] = {
    "/instances/{id}/live-migrate": {
        "POST": Route(
            handler=instance_live.live_migrate,
            about="Live-migrate an instance to another host.",
            body=TargetBody,
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/evacuate": {
        "POST": Route(
            handler=instance_live.evacuate,
            about="Evacuate an instance from a failed host.",
            body=TargetBody,
            answer=OperationReference,
            status=202,
            is_keyed=True,
        ),
    },
    "/migrations": {
        "GET": Route(
            handler=migrations.list_migrations,
            about="List migrations.",
            query=MigrationsQuery,
            answer=MigrationsPage,
            work="list",
        ),
    },
    "/migrations/{uuid}": {
        "GET": Route(handler=migrations.show, about="Show a migration.", answer=ShownMigration),
    },
}

INSTANCE_ROUTES: Mapping[str, Mapping[str, Route]] = {**_RUNNING, **_CHANGING, **_MOVING}
