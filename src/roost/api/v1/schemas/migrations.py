"""Migrations as the API reads and writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery
from roost.model.work.work_rows import MigrationKind, MigrationStatus


class TargetBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an instance is to go."""

    host: Annotated[
        str | None, Meta(description="Name of the service that it goes to, if filters keep that; null: any.")
    ] = None


class ShownMigration(msgspec.Struct, frozen=True, kw_only=True):
    """A move of an instance from one host to another."""

    uuid: Annotated[str, Meta(description="Its uuid, which is also that of the consumer that holds what was left.")]
    instance: Annotated[str, Meta(description="Uuid of the instance.")]
    kind: Annotated[MigrationKind, Meta(description="live: the instance ran meanwhile; evacuate: its host was gone.")]
    status: Annotated[
        MigrationStatus,
        Meta(
            description="moving: it goes on; finished: the instance is there, and what it had is kept until nothing "
            "of it is left there; left: likewise, and it was confirmed; reverting: the instance goes back; "
            "confirmed, reverted, failed: it is over, and holds nothing."
        ),
    ]
    source_host: Annotated[str, Meta(description="Name of the service that the instance was on.")]
    source_node: Annotated[str, Meta(description="Name of the node.")]
    target_host: Annotated[str, Meta(description="Name of the service that it goes to; empty: not chosen yet.")]
    target_node: Annotated[str, Meta(description="Name of the node, likewise.")]
    operation: Annotated[str | None, Meta(description="Uuid of what moves it; null: it is no longer kept.")]
    allocations: Annotated[
        dict[str, dict[str, int]],
        Meta(description="What is held for it, by uuid of the provider: the amount of each resource class."),
    ]
    created_at_s: Annotated[float, Meta(description="When it was asked for, in seconds since the epoch.")]
    changed_at_s: Annotated[float, Meta(description="When its status changed, likewise.")]


class MigrationsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Migrations, in the order in which they were asked for."""

    migrations: list[ShownMigration]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]


class MigrationsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which migrations are shown."""

    instance: Annotated[str, Meta(description="Only those of this instance, by its uuid.")] = ""
    status: Annotated[MigrationStatus | None, Meta(description="Only those in this status.")] = None
    source: Annotated[str, Meta(description="Only those from this service.")] = ""
    target: Annotated[str, Meta(description="Only those to this service.")] = ""


class InstanceMigration(msgspec.Struct, frozen=True, kw_only=True):
    """A move of an instance."""

    uuid: Annotated[str, Meta(description="Of the migration.")]
    kind: Annotated[str, Meta(description="resize, migrate, live or evacuate.")]
    status: Annotated[str, Meta(description="Such as moving, finished, failed.")]
    source_host: Annotated[str, Meta(description="Name of the service that it was on.")]
    target_host: Annotated[str, Meta(description="Name of the service that it goes to; empty: not chosen yet.")]
