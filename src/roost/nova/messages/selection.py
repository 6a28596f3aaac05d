"""Selection: a chosen host or an alternate, as Nova's conductor expects it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from roost.engine.columns.state import State
from roost.model.evidence.decision import Decision, Limits, Pick
from roost.nova.messages.nova_object import build_object
from roost.scheduler.query.query_string import MICROVERSION
from roost.scheduler.rule_support.scopes import ZONE, split_names

# The request of a rebuild claims nothing.
_NOTHING = "null"
_AMOUNTS = ("vcpu", "disk_gb", "memory_mb")


def build_selections(
    decision: Decision, state: State, *, default_zone: str, has_alternates: bool
) -> list[list[dict[str, Any]]]:
    """Return, for each instance, the chosen host and the alternates in its cell, best first.

    Args:
        decision: a granted decision.
        state: columns with the hosts of the decision.
        default_zone: zone of hosts without a zone.
        has_alternates: whether to include alternates.

    Source:
        nova/objects/selection.py
    """
    alternates: dict[str, list[dict[str, Any]]] = {}
    if has_alternates:
        for cell, picks in decision.alternates.items():
            alternates[cell] = [_build_selection(pick, state, default_zone=default_zone) for pick in picks]
    return [
        [_build_selection(pick, state, default_zone=default_zone), *alternates.get(pick.cell, ())]
        for pick in decision.picks
    ]


def build_host(state: State, row: int, *, default_zone: str) -> dict[str, Any]:
    """Return a host without a claim, for an instance that stays there."""
    hosts = state.hosts
    pick = Pick(hosts.names[row], hosts.nodes[row], hosts.facts[row].cell, "", {})
    return _selection(state, row, pick=pick, claim=_NOTHING, version=None, default_zone=default_zone)


def as_dicts(selections: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return only the chosen hosts, in the form for callers that expect no objects."""
    fields = [first["nova_object.data"] for first, *_ in selections]
    return [{"host": each["service_host"], "nodename": each["nodename"], "limits": {}} for each in fields]


def _build_selection(pick: Pick, state: State, *, default_zone: str) -> dict[str, Any]:
    row = _row_of(state, pick)
    claim = {
        "allocations": {uuid: {"resources": amounts} for uuid, amounts in pick.allocations.items()},
        "mappings": pick.mappings or {"": tuple(pick.allocations)},
    }
    return _selection(state, row, pick=pick, claim=json.dumps(claim), version=MICROVERSION, default_zone=default_zone)


def _selection(
    state: State, row: int, *, pick: Pick, claim: str, version: str | None, default_zone: str
) -> dict[str, Any]:
    provider = int(state.hosts.provider_row.each[row])
    data = {
        "compute_node_uuid": state.providers.uuids[provider],
        "service_host": pick.host,
        "nodename": pick.node,
        "cell_uuid": pick.cell,
        "limits": _build_limits(pick.limits),
        "allocation_request": claim,
        "allocation_request_version": version,
        "availability_zone": _zone_of(state, provider, default_zone),
    }
    return build_object("Selection", "1.1", data)


def _row_of(state: State, pick: Pick) -> int:
    rows = state.hosts.rows_of_name.get(pick.host.lower(), ())
    alive, nodes = state.hosts.alive.each, state.hosts.nodes
    return next(row for row in rows if alive[row] and nodes[row] == pick.node)


def _zone_of(state: State, provider: int, default_zone: str) -> str:
    """Return the availability zone of a host; of several, the first by name."""
    zones = [
        zone
        for aggregate in state.membership.labels_of(provider)
        for zone in split_names(state.metadata.get(aggregate, {}).get(ZONE, ""))
    ]
    return min(zones, default=default_zone)


def _build_limits(limits: Limits) -> dict[str, Any]:
    """Return SchedulerLimits: amounts set by filters such as ``ram``, and the overcommit of NUMA cells."""
    numa = limits.get("numa_topology")
    data: dict[str, Any] = {"numa_topology": _build_numa_limits(numa) if isinstance(numa, dict) else None}
    data |= {name: _amount(limits.get(name)) for name in _AMOUNTS}
    return build_object("SchedulerLimits", "1.0", data)


def _amount(limit: Any) -> int | None:
    return int(limit) if isinstance(limit, int | float) else None


def _build_numa_limits(limits: Mapping[str, Any]) -> dict[str, Any]:
    data = {name: limits[name] for name in ("cpu_allocation_ratio", "ram_allocation_ratio")}
    networks = limits.get("network_metadata")
    if networks is not None:
        data["network_metadata"] = build_object(
            "NetworkMetadata", "1.0", {"physnets": list(networks["physnets"]), "tunneled": networks["tunneled"]}
        )
    return build_object("NUMATopologyLimits", "1.1", data)
