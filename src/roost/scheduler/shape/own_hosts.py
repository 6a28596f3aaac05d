"""The hosts of one process: a check of a shape, for the part of the fleet that the process prefers."""

from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Mask
from roost.engine.ranking.rendezvous import owners
from roost.model.evidence.fleet_part import FleetPart
from roost.model.names import uuid_form
from roost.model.request import Request
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class OwnHosts:
    """Keep the hosts of one process.

    It is the last check, so the counts of all other checks stay those of the whole fleet.

    Args:
        mask: bool, shape (hosts,).
        process_count: number of processes that share the fleet.
    """

    name: ClassVar = "own_hosts"
    nova_name: ClassVar = ""
    section: ClassVar = "filter_scheduler"
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, mask: Mask, process_count: int) -> None:
        self.mask = mask
        self._process_count = process_count

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return True: any host may belong to another process."""
        return True

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep the own hosts."""
        return self.mask[hosts.rows]

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        others = self._process_count - 1
        return f"are in the parts of {others:,} other {'process' if others == 1 else 'processes'}"


class OwnMask:
    """The hosts of one process by row, computed once per host until a process joins or leaves."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._part: FleetPart | None = None
        self._mask: Mask = np.zeros(0, dtype=np.bool_)

    def find(self, state: State, part: FleetPart) -> Mask:
        """Return the hosts of a part: bool, shape (hosts,)."""
        if state is not self._state or part != self._part:
            self._state, self._part, self._mask = state, part, np.zeros(0, dtype=np.bool_)
        known, ids = len(self._mask), state.hosts.ids
        if known < len(ids):  # A row keeps its host.
            new = owners(np.array(ids[known:], dtype=np.int64), part.processes) == part.processes.index(part.own)
            self._mask = np.concatenate((self._mask, new))
        return self._mask


def find_part(request: Request, state: State, part: FleetPart | None) -> FleetPart | None:
    """Return the part in which a request is decided if it fits there; None: choose among all hosts.

    A request with a named host has no choice. A move compares hosts with the present one, a cross-cell move with its
    cell, and a soft policy with the hosts of the group. So these need the whole fleet.

    Args:
        request: the request.
        state: the columns.
        part: the part of the process; None: it has none.
    """
    if part is None or request.move is not None or request.force_hosts or request.force_nodes:
        return None
    target = request.destination
    if target is not None and (target.host or target.node or target.allow_cross_cell_move):
        return None
    joined = request.group_joined
    group = None if joined is None else state.groups_by_uuid.get(uuid_form(joined))
    return None if group is not None and group.policy.startswith("soft") else part
