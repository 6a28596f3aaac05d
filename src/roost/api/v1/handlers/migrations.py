"""Migrations: list and show."""

from collections.abc import Iterator
from operator import attrgetter

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.current_names import canonical_service
from roost.api.v1.handlers.instances import allocations_of, provider_names
from roost.api.v1.schemas.migrations import MigrationsPage, MigrationsQuery, ShownMigration
from roost.api.v1.wire.decode_body import field_problem
from roost.api.v1.wire.pages import page_of
from roost.errors import NotFound
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.work_rows import MigrationKind, MigrationRow, MigrationStatus

_CHUNK = 200


def list_migrations(call: Call) -> Response:
    """List migrations, in order of their requests.

    Fails with 400 for an invalid instance uuid.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, MigrationsQuery)
    matches = _of_instance(call, query) if query.instance else _all(call, query)
    page, following = page_of(matches, query)
    return json_response(MigrationsPage(migrations=page, next=following))


def show(call: Call) -> Response:
    """Show a migration.

    Fails with 404 for an unknown migration.
    """
    call.require_thread()
    uuid = uuid_bytes(call.parameter("uuid"))
    row = None if uuid is None else call.agents.reader(call.current).migration(uuid)
    if row is None:
        raise NotFound("migration", call.parameter("uuid"))
    return json_response(_show_migration(call, row))


def _all(call: Call, query: MigrationsQuery) -> Iterator[tuple[int, ShownMigration]]:
    """Yield matching migrations, by number."""
    reader, after_id = call.agents.reader(call.current), query.cursor
    state = call.current.state
    source, target = (canonical_service(state, name) if name else None for name in (query.source, query.target))
    while chunk := reader.migrations(
        after_id=after_id, limit=_CHUNK, status=query.status, source_host=source, target_host=target
    ):
        for row in chunk:
            after_id = row.id
            yield row.id, _show_migration(call, row)


def _of_instance(call: Call, query: MigrationsQuery) -> Iterator[tuple[int, ShownMigration]]:
    uuid = uuid_bytes(query.instance)
    if uuid is None:
        raise field_problem("?instance", f"{query.instance[:70]!r} is not a valid UUID")
    for row in sorted(call.agents.reader(call.current).migrations_of(uuid), key=attrgetter("id")):
        if row.id > query.cursor and _matches(row, query):
            yield row.id, _show_migration(call, row)


def _matches(move: MigrationRow, query: MigrationsQuery) -> bool:
    """Return whether a migration matches the filters of a query, except for the instance."""
    return (
        query.status in {None, move.status}
        and query.source.lower() in {"", move.source_host.lower()}
        and query.target.lower() in {"", move.target_host.lower()}
    )


def _show_migration(call: Call, row: MigrationRow) -> ShownMigration:
    state = call.current.state
    reader, holder = call.agents.reader(call.current), state.holders.get(row.uuid)
    operation, status = reader.operation(row.operation_id), reader.status(row.instance_uuid)
    allocations = {} if holder is None else allocations_of(state, holder)
    return ShownMigration(
        uuid=uuid_text(row.uuid),
        instance=uuid_text(row.instance_uuid),
        instance_name="" if status is None else status.name,
        kind=msgspec.convert(row.kind, MigrationKind),
        status=msgspec.convert(row.status, MigrationStatus),
        source_host=row.source_host,
        source_node=row.source_node,
        target_host=row.target_host,
        target_node=row.target_node,
        operation=None if operation is None else uuid_text(operation.uuid),
        allocations=allocations,
        provider_names=provider_names(state, allocations),
        created_at_s=row.created_at_s,
        changed_at_s=row.changed_at_s,
    )
