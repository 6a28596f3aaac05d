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
    operations,
)
from roost.api.v1.route import Route
from roost.api.v1.schemas.instances import (
    Accepted,
    AcceptedInstances,
    DeleteQuery,
    DetailedInstance,
    InstancesBody,
    InstancesPage,
    InstancesQuery,
    MigrateBody,
    RebuildBody,
    ResizeBody,
    RevertBody,
)
from roost.api.v1.schemas.migrations import MigrationsPage, MigrationsQuery, ShownMigration, TargetBody
from roost.api.v1.schemas.operations import OperationQuery, ShownOperation

# What is asked of instances.
_RUNNING: Mapping[str, Mapping[str, Route]] = {
    "/instances": {
        "GET": Route(
            handler=instances.list_instances, about="List instances.", query=InstancesQuery, answer=InstancesPage
        ),
        "POST": Route(
            handler=instance_acts.create,
            about="Let instances run on hosts that are chosen for them.",
            body=InstancesBody,
            answer=AcceptedInstances,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}": {
        "GET": Route(handler=instances.show, about="Show an instance, and its story.", answer=DetailedInstance),
        "DELETE": Route(
            handler=instance_acts.delete,
            about="End an instance; one that nobody was asked to run is released now.",
            query=DeleteQuery,
            answer=None,
            status=204,
            later=Accepted,
            is_keyed=True,
        ),
    },
    "/instances/{id}/start": {
        "POST": Route(
            handler=instance_acts.start,
            about="Start an instance that was stopped.",
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/stop": {
        "POST": Route(
            handler=instance_acts.stop,
            about="Stop an instance.",
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/resize": {
        "POST": Route(
            handler=instance_moves.resize,
            about="Let an instance have another size.",
            body=ResizeBody,
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/migrate": {
        "POST": Route(
            handler=instance_moves.migrate,
            about="Let an instance go to another host, stopped on the way.",
            body=MigrateBody,
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/confirm": {
        "POST": Route(
            handler=instance_moves.confirm,
            about="Let an instance stay where a move brought it.",
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/revert": {
        "POST": Route(
            handler=instance_moves.revert,
            about="Let an instance go back to where a move took it from.",
            body=RevertBody,
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/operations/{id}": {
        "GET": Route(
            handler=operations.show,
            about="Show an operation, at once or when it is over.",
            query=OperationQuery,
            answer=ShownOperation,
        ),
        "DELETE": Route(
            handler=drain.cancel,
            about="Let no more instances leave a host; those on their way arrive.",
            answer=Accepted,
            status=202,
        ),
    },
}

# What changes instances where they are, or takes them off their hosts for a while.
_CHANGING: Mapping[str, Mapping[str, Route]] = {
    "/instances/{id}/rebuild": {
        "POST": Route(
            handler=instance_changes.rebuild,
            about="Give an instance the disk of an image anew.",
            body=RebuildBody,
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/shelve": {
        "POST": Route(
            handler=instance_changes.shelve,
            about="Save the disk of an instance, and let it run no more.",
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/offload": {
        "POST": Route(
            handler=instance_changes.offload,
            about="Let an instance that is shelved leave its host.",
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/unshelve": {
        "POST": Route(
            handler=instance_changes.unshelve,
            about="Let an instance that is shelved run again.",
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/reboot": {
        "POST": Route(
            handler=instance_changes.reboot,
            about="Let an instance begin anew.",
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/reset": {
        "POST": Route(
            handler=instance_changes.reset,
            about="Let an instance in ERROR be what its host says.",
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
}

# What is asked of instances that leave their hosts, and of their moves.
_MOVING: Mapping[str, Mapping[str, Route]] = {
    "/instances/{id}/live-migrate": {
        "POST": Route(
            handler=instance_live.live_migrate,
            about="Let an instance go to another host while it runs.",
            body=TargetBody,
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/instances/{id}/evacuate": {
        "POST": Route(
            handler=instance_live.evacuate,
            about="Build an instance on another host, since its own is gone.",
            body=TargetBody,
            answer=Accepted,
            status=202,
            is_keyed=True,
        ),
    },
    "/migrations": {
        "GET": Route(
            handler=migrations.list_migrations,
            about="List moves of instances.",
            query=MigrationsQuery,
            answer=MigrationsPage,
        ),
    },
    "/migrations/{uuid}": {
        "GET": Route(handler=migrations.show, about="Show a move of an instance.", answer=ShownMigration),
    },
}

INSTANCE_ROUTES: Mapping[str, Mapping[str, Route]] = {**_RUNNING, **_CHANGING, **_MOVING}
