"""Results in the forms of Nova's releases: the chosen host of each instance, and its alternates."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from roost.compat.objects import Selection
from roost.engine.columns.state import State
from roost.model.evidence.decision import Decision, Pick
from roost.scheduler.query.query_string import MICROVERSION
from roost.scheduler.rule_support.scopes import zones

Selections = list[list[Selection]]


def selections_of(decision: Decision, state: State, *, default_zone: str = "nova") -> Selections:
    """Return, for each instance, the chosen host and the alternates in its cell, best first; empty if refused.

    Args:
        state: columns with the hosts of the decision.
        default_zone: zone of hosts without a zone.
    """
    tables = _Tables(state, default_zone)
    alternates = {cell: [tables.selection(pick) for pick in picks] for cell, picks in decision.alternates.items()}
    return [[tables.selection(pick), *alternates.get(pick.cell, [])] for pick in decision.picks]


def as_dicts(selections: Sequence[Sequence[Selection]]) -> list[dict[str, Any]]:
    """Return only the chosen hosts, as dicts."""
    return [
        {"host": first.service_host, "nodename": first.nodename, "limits": first.limits} for first, *_ in selections
    ]


def as_two_lists(
    selections: Sequence[Sequence[Selection]],
) -> tuple[list[list[tuple[str, str]]], list[list[dict[str, Any]]]]:
    """Return the hosts and the allocation requests of each instance, as parallel lists.

    Returns:
        Lists of (host, node), and lists of the bodies of claims; the chosen host comes first.
    """
    hosts = [[(each.service_host, each.nodename) for each in instance] for instance in selections]
    requests = [[json.loads(each.allocation_request) for each in instance] for instance in selections]
    return hosts, requests


class _Tables:
    """Rows and zones of hosts, by the names of service and node."""

    def __init__(self, state: State, default_zone: str) -> None:
        hosts = state.hosts
        self._state = state
        self._rows = {(hosts.names[row], hosts.nodes[row]): row for row in np.flatnonzero(hosts.alive.view).tolist()}
        self._zones = zones(state, default_zone=default_zone)

    def selection(self, pick: Pick) -> Selection:
        state, row = self._state, self._rows[pick.host, pick.node]
        allocations = {uuid: {"resources": amounts} for uuid, amounts in pick.allocations.items()}
        claim = {"allocations": allocations} | ({"mappings": pick.mappings} if pick.mappings else {})
        return Selection(
            compute_node_uuid=state.providers.uuids[int(state.hosts.provider_row.view[row])],
            service_host=pick.host,
            nodename=pick.node,
            cell_uuid=pick.cell,
            limits=dict(pick.limits),
            allocation_request=json.dumps(claim),
            allocation_request_version=MICROVERSION,
            availability_zone=next((scope.name for scope in self._zones if scope.mask[row]), None),
        )
