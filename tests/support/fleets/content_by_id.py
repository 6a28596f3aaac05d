"""The content of a state by ids, for comparison of states whose rows differ because of deleted providers and hosts."""

from typing import Any

import msgspec

from roost.engine.columns.host_columns import Hosts
from roost.engine.columns.state import Group, State
from roost.engine.columns.trees import Providers

_HOLDER = ("generation", "id", "instance", "kept", "project_id", "takes", "type_id", "user_id", "uuid")


def content_by_id(state: State) -> dict[str, Any]:
    """Return the content of a state without its row numbers, its deleted rows and its times."""
    return {
        "names": {kind: _names(state, kind) for kind in ("resource_class", "trait", "consumer_type")},
        "aggregates": (
            {uuid: state.aggregates.id_of(uuid) for uuid in state.aggregates},
            state.aggregate_names,
            state.aggregate_versions,
            state.metadata,
        ),
        "documents": (state.documents, state.named, state.lessons, state.images),
        "providers": {state.providers.ids[row]: _provider(state, row) for row in _alive(state.providers)},
        "hosts": {state.hosts.ids[row]: _host(state, row) for row in _alive(state.hosts)},
        "holders": {
            uuid: {name: getattr(holder, name) for name in _HOLDER} | {"takes": sorted(holder.takes)}
            for uuid, holder in state.holders.items()
        },
        "holder ids": {number: holder.uuid for number, holder in state.holders_by_id.items()},
        "groups": {number: _group(state, group) for number, group in state.groups.items()},
        "tasks": state.tasks,
        "position": state.position,
        # The order of rows breaks ties between equal hosts.
        "order": [[each.ids[row] for row in _alive(each)] for each in (state.providers, state.hosts)],
    }


def _alive(rows: Providers | Hosts) -> list[int]:
    return [row for row in range(len(rows)) if rows.alive.view[row]]


def _names(state: State, kind: str) -> dict[str, int | None]:
    table = state.name_table(kind)
    return {name: table.id_of(name) for name in table} | {"highest": table.highest}


def _provider(state: State, row: int) -> dict[str, Any]:
    providers = state.providers
    parent = int(providers.parent.view[row])
    return {
        "identity": (providers.uuids[row], providers.names[row], providers.versions[row]),
        "parent": providers.ids[parent] if parent >= 0 else None,
        "root": providers.ids[int(providers.root.view[row])],
        "children": [providers.ids[child] for child in providers.children.get(row, [])],
        "generation": int(providers.generation.view[row]),
        "traits": sorted(state.traits.labels_of(row)),
        "aggregates": sorted(state.membership.labels_of(row)),
        "inventories": {
            class_id: [
                getattr(columns, name).view[row].item()
                for name in ("total", "reserved", "min_unit", "max_unit", "step_size", "ratio", "used", "free")
            ]
            for class_id, columns in state.classes.items()
            if row in list(columns.holders)
        },
    }


def _host(state: State, row: int) -> dict[str, Any]:
    hosts = state.hosts
    return {
        "identity": (hosts.names[row], hosts.nodes[row], hosts.versions[row]),
        "provider": state.providers.ids[int(hosts.provider_row.view[row])],
        "facts": msgspec.to_builtins(hosts.facts[row]),
        "columns": {name: column.view[row].item() for name, column in hosts.columns.items()},
        "tasks": hosts.tasks.get(row, 0),
    }


def _group(state: State, group: Group) -> dict[str, Any]:
    ids = state.hosts.ids
    return {
        "rule": (group.uuid, group.name, group.policy, group.limit),
        "places": {scope: place for scope, place in group.places.items() if place[1]},
        "members": {ids[row]: count for row, count in group.members.items() if count},
        "kept": {ids[row]: count for row, count in group.kept.items() if count},
    }
