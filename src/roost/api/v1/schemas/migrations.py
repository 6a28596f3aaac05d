"""Migrations in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery
from roost.model.work.work_rows import MigrationKind, MigrationStatus


class TargetBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of a move."""

    host: Annotated[
        str | None, Meta(description="Service of the target host, which must pass the filters; null: any host.")
    ] = None


class ShownMigration(msgspec.Struct, frozen=True, kw_only=True):
    """A move of an instance from one host to another."""

    uuid: Annotated[
        str, Meta(description="Uuid, also of a consumer: it holds resources on one host until the move ends.")
    ]
    instance: Annotated[str, Meta(description="Uuid of the instance.")]
    instance_name: Annotated[str, Meta(description="Name of the instance; empty: a mere claim.")]
    kind: Annotated[
        MigrationKind, Meta(description="live: without a stop of the instance; evacuate: from a failed host.")
    ]
    status: Annotated[
        MigrationStatus,
        Meta(
            description="moving: in progress; finished: the instance is on the target, but can still return, or the "
            "source has not removed its guest yet; left: confirmed, but the source has not removed the guest yet; "
            "reverting: the instance moves back; confirmed, reverted, failed: ended, without resources."
        ),
    ]
    source_host: Annotated[str, Meta(description="Service of the source host.")]
    source_node: Annotated[str, Meta(description="Source node.")]
    target_host: Annotated[str, Meta(description="Service of the target host; empty: not chosen yet.")]
    target_node: Annotated[str, Meta(description="Target node; empty: not chosen yet.")]
    operation: Annotated[str | None, Meta(description="Uuid of its operation; null: no longer stored.")]
    allocations: Annotated[
        dict[str, dict[str, int]],
        Meta(description="Resources that the migration holds: amount of each resource class, by provider uuid."),
    ]
    provider_names: Annotated[dict[str, str], Meta(description="Names of the providers of its allocations, by uuid.")]
    created_at_s: Annotated[float, Meta(description="Time of the request, in seconds since the epoch.")]
    changed_at_s: Annotated[float, Meta(description="Time of the last change of status, in seconds since the epoch.")]


class MigrationsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of migrations, in order of their requests."""

    migrations: list[ShownMigration]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]


class MigrationsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of migrations, and their filters."""

    instance: Annotated[str, Meta(description="Only migrations of the instance with this uuid.")] = ""
    status: Annotated[MigrationStatus | None, Meta(description="Only migrations in this status.")] = None
    source: Annotated[str, Meta(description="Only migrations from this service.")] = ""
    target: Annotated[str, Meta(description="Only migrations to this service.")] = ""


class InstanceMigration(msgspec.Struct, frozen=True, kw_only=True):
    """A migration of an instance."""

    uuid: Annotated[str, Meta(description="Uuid of the migration.")]
    kind: Annotated[str, Meta(description="resize, migrate, live or evacuate.")]
    status: Annotated[str, Meta(description="Status, such as moving, finished or failed.")]
    source_host: Annotated[str, Meta(description="Service of the source host.")]
    target_host: Annotated[str, Meta(description="Service of the target host; empty: not chosen yet.")]
