"""The providers and the events of a host."""

from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import islice
from operator import attrgetter

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.handlers.hosts import row_of_node
from roost.api.v1.schemas.hosts import (
    HostEvent,
    HostEvents,
    HostEventsQuery,
    ProvidersQuery,
    ProviderTree,
    ShownHolder,
    ShownInventory,
    ShownTreeProvider,
)
from roost.engine.columns.state import Holder, State
from roost.errors import report_corruption
from roost.model.names import uuid_text
from roost.model.work.change_query import ChangeQuery
from roost.model.work.work_rows import EventRow, StatusRow
from roost.model.writes import CLASS_BITS, CLASS_MASK
from roost.ports import WorkReader

_PROVIDERS_MAX = 1_000
# Consumers per query for names.
_CHUNK = 500
# Maximum number of migrations with the name of their instance.
_MIGRATIONS_MAX = 200
# Maximum number of lines of stories searched for a host, and of its instances.
_SCAN_MAX = 5_000
_INSTANCES_MAX = 2_000


def show_providers(call: Call) -> Response:
    """Show the provider tree of a host: inventories, traits, and the consumers with allocations.

    Clients without policy roost:all_projects see only consumers of their own project. Fails with 404 for an unknown
    name, with 400 for an ambiguous one.
    """
    call.require_thread()
    query, state, project = call.query, call.current.state, call.project
    assert isinstance(query, ProvidersQuery)
    row = row_of_node(state, call.parameter("host"))
    root = int(state.hosts.provider_row.each[row])
    rows = list(islice(_walk(state, root), _PROVIDERS_MAX))
    found: list[tuple[int, int, list[Holder]]] = []
    left = query.holders
    for provider_row in call.request.while_active(rows):
        consumers = state.consumers().find_by_provider(state.providers.ids[provider_row])
        visible = (holder for holder in consumers if project in {None, holder.project_id})
        found.append((provider_row, len(consumers), list(islice(visible, left))))
        left -= len(found[-1][2])
    names = _HolderNames(call, [holder for _, _, holders in found for holder in holders])
    return json_response(
        ProviderTree(
            host=state.hosts.names[row],
            node=state.hosts.nodes[row],
            provider_count=len(state.providers.rows_of_tree(root)),
            providers=[
                _show_provider(state, provider_row, holders, holder_count=count, names=names)
                for provider_row, count, holders in call.request.while_active(found)
            ],
        )
    )


def list_events(call: Call) -> Response:
    """List the events of a host, newest first: changes by clients, and lines of stories that concern it.

    A line concerns a host if it names the host, or if its instance is there now. Only the newest 5,000 lines of all
    hosts are searched. Clients without policy roost:all_projects see only changes by clients of their own project, and
    lines about no instance or one of their project. Fails with 404 for an unknown name, with 400 for an ambiguous one.
    """
    call.require_thread()
    query, state, project = call.query, call.current.state, call.project
    assert isinstance(query, HostEventsQuery)
    row = row_of_node(state, call.parameter("host"))
    service, node = state.hosts.names[row], state.hosts.nodes[row]
    reader = call.agents.reader(call.current)
    before_s = reader.now_s() + 1.0 if query.before is None else query.before
    lines = reader.events_before(before_s, newest=_SCAN_MAX)
    here = {status.uuid for status in reader.statuses(limit=_INSTANCES_MAX, host=service)}
    matches = [line for line in lines if line.instance_uuid in here or _names_host(line, service)]
    if project is not None:
        matches = _of_project(reader, matches, project)
    events = [
        *_show_lines(reader, matches[: query.limit]),
        *_changes(reader, {service, node}, project=project, before_s=before_s, newest=query.limit),
    ]
    return json_response(
        HostEvents(
            events=nlargest(query.limit, events, key=attrgetter("at_s")),
            since_s=lines[-1].at_s if len(lines) == _SCAN_MAX else 0.0,
        )
    )


def _walk(state: State, root: int) -> Iterator[int]:
    """Yield the rows of a tree, each after its parent; siblings in the order of their names."""
    providers, ahead = state.providers, [root]
    while ahead:
        row = ahead.pop()
        yield row
        ahead += sorted(providers.children.get(row, ()), key=lambda each: providers.names[each], reverse=True)


class _HolderNames:
    """The instances of consumers, and their names."""

    def __init__(self, call: Call, holders: Sequence[Holder]) -> None:
        reader = call.agents.reader(call.current)
        uuids = list({holder.uuid for holder in holders})
        moves = [holder.uuid for holder in holders if holder.instance is None]
        self._instance_of = {
            uuid: move.instance_uuid
            for uuid in list(dict.fromkeys(moves))[:_MIGRATIONS_MAX]
            if (move := reader.migration(uuid)) is not None
        }
        uuids += self._instance_of.values()
        self._names = {
            status.uuid: status.name for status in _statuses_of(reader, uuids) if call.can_see(status.project_id)
        }

    def show(self, holder: Holder, resources: dict[str, int]) -> ShownHolder:
        """Return a consumer with its amounts on one provider."""
        instance = holder.uuid if holder.instance is not None else self._instance_of.get(holder.uuid)
        return ShownHolder(
            consumer=uuid_text(holder.uuid),
            kind="instance" if holder.instance is not None else "other" if instance is None else "migration",
            instance=None if instance is None else uuid_text(instance),
            name=self._names.get(instance or b"", ""),
            project_id=holder.project_id,
            resources=resources,
        )


def _show_provider(
    state: State, row: int, holders: Sequence[Holder], *, holder_count: int, names: _HolderNames
) -> ShownTreeProvider:
    providers, name_of = state.providers, state.class_ids.name_of
    provider_id, parent = providers.ids[row], int(providers.parent.each[row])
    inventories = {
        name_of(class_id): ShownInventory(
            total=int(columns.total.each[row]),
            reserved=int(columns.reserved.each[row]),
            allocation_ratio=float(columns.ratio.each[row]),
            min_unit=int(columns.min_unit.each[row]),
            max_unit=int(columns.max_unit.each[row]),
            step_size=int(columns.step_size.each[row]),
            capacity=int(columns.capacity.each[row]),
            used=int(columns.used.each[row]),
        )
        for class_id, columns in state.classes.items()
        if row in columns.holders
    }
    shown = []
    for holder in holders:
        resources: dict[str, int] = {}
        for inventory_id, amount in holder.takes:
            if inventory_id >> CLASS_BITS == provider_id:
                resources[name_of(inventory_id & CLASS_MASK)] = amount
        shown.append(names.show(holder, resources))
    return ShownTreeProvider(
        uuid=providers.uuids[row],
        name=providers.names[row],
        parent=None if parent < 0 else providers.uuids[parent],
        generation=int(providers.generation.each[row]),
        traits=sorted(state.trait_ids.name_of(label) for label in state.traits.labels_of(row)),
        inventories=dict(sorted(inventories.items())),
        holder_count=holder_count,
        holders=shown,
    )


def _names_host(line: EventRow, service: str) -> bool:
    """Return whether a line of a story names a host."""
    name = service.lower()
    if name.encode() not in line.body.lower():
        return False
    details = _details_of(line)
    return any(details.get(key, "").lower() == name for key in ("host", "source"))


def _of_project(reader: WorkReader, lines: Sequence[EventRow], project_id: str) -> list[EventRow]:
    """Return the lines about no instance, or about one of a project."""
    uuids = list({line.instance_uuid for line in lines if line.instance_uuid is not None})
    own = {status.uuid for status in _statuses_of(reader, uuids) if status.project_id == project_id}
    return [line for line in lines if line.instance_uuid is None or line.instance_uuid in own]


def _statuses_of(reader: WorkReader, uuids: Sequence[bytes]) -> Iterator[StatusRow]:
    for at in range(0, len(uuids), _CHUNK):
        yield from reader.statuses_of(uuids[at : at + _CHUNK])


def _details_of(line: EventRow) -> dict[str, str]:
    with report_corruption(f"event {line.id}"):
        return msgspec.json.decode(line.body, type=dict[str, str]) if line.body else {}


def _show_lines(reader: WorkReader, lines: Sequence[EventRow]) -> list[HostEvent]:
    numbers = list({line.operation_id for line in lines if line.operation_id})
    uuids = {row.id: uuid_text(row.uuid) for row in reader.operations_by_id(numbers)} if numbers else {}
    instances = list({line.instance_uuid for line in lines if line.instance_uuid is not None})
    names = {status.uuid: status.name for status in _statuses_of(reader, instances)}
    return [
        HostEvent(
            at_s=line.at_s,
            kind=line.kind,
            is_change=False,
            instance=None if line.instance_uuid is None else uuid_text(line.instance_uuid),
            instance_name=names.get(line.instance_uuid or b"", ""),
            operation=uuids.get(line.operation_id),
            user_id="",
            details=_details_of(line),
        )
        for line in lines
    ]


def _changes(
    reader: WorkReader, names: set[str], *, project: str | None, before_s: float, newest: int
) -> list[HostEvent]:
    events = []
    for name in names:
        wanted = ChangeQuery(object=name, project_id=project, until_s=before_s, newest=newest)
        for row in reader.changes(wanted):
            with report_corruption(f"change {row.id}"):
                details = msgspec.json.decode(row.body, type=dict[str, str]) if row.body else {}
            events.append(
                HostEvent(
                    at_s=row.at_s,
                    kind=row.kind,
                    is_change=True,
                    instance=None,
                    instance_name="",
                    operation=None,
                    user_id=row.user_id,
                    details=details,
                )
            )
    return events
