"""Instances: list and show."""

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.current_names import canonical_service
from roost.api.v1.handlers.operations import STORY_MAX, show_events
from roost.api.v1.schemas.instances import (
    DetailedInstance,
    InstanceOperation,
    InstancesPage,
    InstancesQuery,
    ShownInstance,
)
from roost.api.v1.schemas.migrations import InstanceMigration
from roost.api.v1.wire.list_fields import NamePattern, fields_of, fields_response
from roost.conductor.operation.retries import attempt_record
from roost.conductor.operation.step import body_of
from roost.engine.columns.state import Holder, State
from roost.errors import NotFound
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.builds import Attempt
from roost.model.work.operation import InstanceBuild, Status
from roost.model.work.work_rows import MigrationRow, OperationRow, StatusRow
from roost.model.writes import CLASS_BITS, CLASS_MASK
from roost.ports import WorkReader

# Maximum number of instances scanned for a page, regardless of the number shown.
_SCAN_MAX = 5_000
_CHUNK = 200
# Maximum number of operations shown with an instance, newest first.
_OPERATIONS_MAX = 20

# The cursor after an instance, and the instance; None: the query excludes it.
_InstanceRows = Iterator[tuple[str, StatusRow | Holder | None]]


def list_instances(call: Call) -> Response:
    """List instances in order of their requests, then mere claims by uuid.

    Clients without policy roost:all_projects see only instances of their own project. An instance appears once in the
    pages, even if it moves meanwhile. Fails with 400 for an unknown field.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, InstancesQuery)
    fields, project = fields_of(query.fields, ShownInstance), call.project
    if project is not None:
        if query.project not in {None, project}:
            return json_response(InstancesPage(instances=[], next=None))
        query = msgspec.structs.replace(query, project=project)
    after = uuid_bytes(query.cursor) if "-" in query.cursor else None
    matches: Iterable[tuple[str, StatusRow | Holder | None]] = _find_claims(call, query, after=after or b"")
    if after is None:
        matches = chain(_find_statuses(call, query, after_id=int(query.cursor or 0)), matches)
    page: list[ShownInstance] = []
    last = following = None
    for scanned_count, (cursor, each) in enumerate(call.request.while_active(matches)):
        if len(page) == query.limit or scanned_count == _SCAN_MAX:
            following = last
            break
        last = cursor
        if each is not None:
            page.append(_show_instance(call, each))
    if query.fields:
        return fields_response("instances", page, following, fields=fields)
    return json_response(InstancesPage(instances=page, next=following))


def show(call: Call) -> Response:
    """Show an instance with its attempts, operations, migrations and story.

    Fails with 404 for an unknown instance, or one of another project.
    """
    call.require_thread()
    reader, uuid = call.agents.reader(call.current), uuid_bytes(call.name)
    subject = None if uuid is None else reader.status(uuid) or claim_of(call, uuid)
    if uuid is None or subject is None or not call.can_see(subject.project_id):
        raise NotFound("instance", call.name)
    summary = msgspec.structs.asdict(_show_instance(call, subject))
    operations = reader.operations_on(uuid, newest=_OPERATIONS_MAX)
    return json_response(
        DetailedInstance(
            **summary,
            group_name=_group_name(call.current.state, subject),
            provider_names=provider_names(call.current.state, summary["allocations"]),
            attempts=_attempts(operations),
            operations=[_operation(each) for each in operations],
            migrations=[_migration(each) for each in reader.migrations_of(uuid)],
            story=show_events(reader.events_on(uuid, newest=STORY_MAX)),
        )
    )


def claim_of(call: Call, uuid: bytes | None) -> Holder | None:
    """Return the consumer of an instance; None: it has no allocations, or belongs to another project."""
    holder = None if uuid is None else call.current.state.holders.get(uuid)
    return holder if holder is not None and holder.instance is not None and call.can_see(holder.project_id) else None


def host_of(state: State, holder: Holder) -> str:
    """Return the service of an instance with a claim."""
    assert holder.instance is not None, "the consumer is an instance"
    return state.hosts.names[state.hosts.row_of_id[holder.instance.host_id]]


def allocations_of(state: State, holder: Holder) -> dict[str, dict[str, int]]:
    """Return the allocations of a consumer, by provider uuid."""
    providers, name_of = state.providers, state.class_ids.name_of
    allocations: dict[str, dict[str, int]] = {}
    for inventory_id, amount in holder.takes:
        uuid = providers.uuids[providers.row_of_id[inventory_id >> CLASS_BITS]]
        allocations.setdefault(uuid, {})[name_of(inventory_id & CLASS_MASK)] = amount
    return allocations


def provider_names(state: State, allocations: Iterable[str]) -> dict[str, str]:
    """Return the names of providers, by uuid."""
    providers = state.providers
    return {uuid: providers.names[providers.row_of_uuid[uuid]] for uuid in allocations}


def _find_statuses(call: Call, query: InstancesQuery, *, after_id: int) -> _InstanceRows:
    """Yield instances with a status, by number."""
    reader = call.agents.reader(call.current)
    host = canonical_service(call.current.state, query.host) if query.host else None
    pattern = NamePattern(query.name, is_exact=True)
    while chunk := reader.statuses(
        after_id=after_id, limit=_CHUNK, project_id=query.project, host=host, status=query.status
    ):
        for status in chunk:
            after_id = status.id
            is_match = pattern.accepts(status.name) and (status.status != "DELETED" or query.status == "DELETED")
            yield str(status.id), status if is_match else None


def _find_claims(call: Call, query: InstancesQuery, *, after: bytes) -> _InstanceRows:
    """Yield mere claims, by uuid; none for a query with a name or a status, which claims lack."""
    if query.name or query.status is not None:
        return
    claims = heapq.nsmallest(_SCAN_MAX + 1, _find_holders(call, query, after=after), key=lambda holder: holder.uuid)
    reader = call.agents.reader(call.current)
    for at in range(0, len(claims), _CHUNK):
        chunk = claims[at : at + _CHUNK]
        running = {status.uuid for status in reader.statuses_of([holder.uuid for holder in chunk])}
        for holder in chunk:
            yield uuid_text(holder.uuid), None if holder.uuid in running else holder


def _find_holders(call: Call, query: InstancesQuery, *, after: bytes) -> Iterator[Holder]:
    state = call.current.state
    holders: Iterable[Holder] = state.holders_by_id.values()
    if query.project is not None:
        holders = state.consumers().find_by_project(query.project)
    hosts = state.hosts
    ids = {hosts.ids[row] for row in hosts.rows_of_name.get(query.host.lower(), ())} if query.host else None
    for holder in call.request.while_active(holders):
        instance = holder.instance
        if instance is not None and holder.uuid > after and (ids is None or instance.host_id in ids):
            yield holder


def _show_instance(call: Call, subject: StatusRow | Holder) -> ShownInstance:
    state = call.current.state
    if isinstance(subject, StatusRow):
        return _show_status(state, call.agents.reader(call.current), subject)
    assert subject.instance is not None, "the consumer is an instance"
    row = state.hosts.row_of_id[subject.instance.host_id]
    return ShownInstance(
        uuid=uuid_text(subject.uuid),
        name="",
        status=None,
        task="",
        fault="",
        operation=None,
        host=state.hosts.names[row],
        node=state.hosts.nodes[row],
        project_id=subject.project_id,
        user_id=subject.user_id,
        group=_group(state, subject),
        allocations=allocations_of(state, subject),
        decision=None,
        created_at_s=None,
        changed_at_s=None,
    )


def _show_status(state: State, reader: WorkReader, status: StatusRow) -> ShownInstance:
    holder = state.holders.get(status.uuid)
    operation = reader.operation(status.operation_id) if status.operation_id else None
    decision = status.decision_uuid
    return ShownInstance(
        uuid=uuid_text(status.uuid),
        name=status.name,
        status=msgspec.convert(status.status, Status),
        task=status.task,
        fault=status.fault,
        operation=None if operation is None else uuid_text(operation.uuid),
        host=status.host,
        node=status.node,
        project_id=status.project_id,
        user_id=status.user_id,
        group=None if holder is None else _group(state, holder),
        allocations={} if holder is None else allocations_of(state, holder),
        decision=None if decision is None else uuid_text(decision),
        created_at_s=status.created_at_s,
        changed_at_s=status.changed_at_s,
    )


def _group(state: State, holder: Holder) -> str | None:
    group = None if holder.instance is None else state.groups.get(holder.instance.group_id)
    return None if group is None else group.uuid


def _group_name(state: State, subject: StatusRow | Holder) -> str | None:
    holder = state.holders.get(subject.uuid)
    uuid = None if holder is None else _group(state, holder)
    return None if uuid is None else state.groups_by_uuid[uuid].name


def _attempts(operations: list[OperationRow]) -> list[Attempt]:
    """Return the hosts of the build attempts of an instance; the current one is last."""
    row = next((each for each in operations if each.kind == "spawn"), None)
    if row is None:
        return []
    body = body_of(row, InstanceBuild)
    return [*body.attempts, *([] if row.outcome or not body.picks else [attempt_record(body.picks[0])])]


def _operation(row: OperationRow) -> InstanceOperation:
    return InstanceOperation(
        uuid=uuid_text(row.uuid), kind=row.kind, outcome=row.outcome or "open", created_at_s=row.created_at_s
    )


def _migration(row: MigrationRow) -> InstanceMigration:
    return InstanceMigration(
        uuid=uuid_text(row.uuid),
        kind=row.kind,
        status=row.status,
        source_host=row.source_host,
        target_host=row.target_host,
    )
