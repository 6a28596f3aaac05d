"""What an instance takes of a host beside amounts, which the host only reports later.

For the length of one request it is taken from what the host reported, so that the request's next instance finds the
host as it will be. Afterwards hosts are as they reported again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from roost.engine.columns.state import State
from roost.engine.numa.cell_choice import place, sockets_of
from roost.engine.numa.cell_limits import overcommit_in
from roost.engine.numa.cell_usage import with_instance
from roost.engine.pci.pools import UNMAPPED, left
from roost.errors import BadRequest
from roost.model.allocation import Mappings
from roost.model.devices.pci import PciRequest
from roost.model.devices.topology import InstanceTopology
from roost.model.evidence.decision import Pick
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.scheduler.numa.constraints import networks_of, topology_of
from roost.scheduler.pipeline.shape import Shape


class ReportedDemand:
    """What each instance of a request takes of a host's memory nodes and devices.

    Args:
        request: what is asked for.
        pci_requests: all devices that it wants.
        is_packing: whether cells with least left are preferred.

    Source:
        nova/scheduler/host_manager.py, HostState.consume_from_request.
    """

    def __init__(self, request: Request, pci_requests: Sequence[PciRequest], *, is_packing: bool = False) -> None:
        self._is_packing = is_packing
        self._topology = _find_topology(request)
        self._needs = networks_of(request)
        self._pci_requests = pci_requests

    @property
    def is_any(self) -> bool:
        """Say whether it takes anything that hosts only report."""
        return self._topology is not None or bool(self._pci_requests)

    def take_from(self, facts: HostFacts, *, limits: Mapping[str, Any], mappings: Mappings = UNMAPPED) -> HostFacts:
        """Return the facts of a host with one instance more.

        What the host does not have, because nothing kept the instance away, is not taken.

        Args:
            facts: as they are; the same are returned where nothing of them changes.
            limits: what the host was told it may have in use.
            mappings: the providers that serve the instance there.
        """
        numa, cells = facts.numa, None
        if self._topology is not None and numa is not None:
            placed_cells = place(
                facts,
                self._topology,
                overcommit=overcommit_in(limits),
                needs=self._needs,
                requests=self._pci_requests,
                mappings=mappings,
                is_packing=self._is_packing,
            )
            if placed_cells is not None:
                numa = with_instance(numa, placed_cells)
                cells = [each.host_cell for each in placed_cells]
        pools = facts.pci_pools
        if self._pci_requests and pools:
            sockets = sockets_of(facts)
            pools = left(pools, self._pci_requests, cells=cells, sockets=sockets, mappings=mappings) or pools
        if numa is facts.numa and pools is facts.pci_pools:
            return facts
        return msgspec.structs.replace(facts, numa=numa, pci_pools=pools)


class Consumption:
    """What the instances of one request have taken so far of the hosts of a state, to be given back at its end."""

    def __init__(self, state: State, shape: Shape, *, is_packing: bool) -> None:
        self._state = state
        self._shape = shape
        self._has_new_shape = False
        self._demand = ReportedDemand(shape.spec.request, shape.spec.pci_requests, is_packing=is_packing)

    def take(self, picks: Iterable[tuple[int, Mappings, Pick]]) -> None:
        """Let hosts be as with one instance more each: row, the providers that serve it there, and what it was told."""
        hosts = self._state.hosts
        rows = []
        for row, mappings, pick in picks:
            facts = self._demand.take_from(hosts.facts[row], limits=pick.limits, mappings=mappings)
            hosts.consume(row, facts, io_ops=uuid_bytes(pick.instance_uuid) not in self._state.tasks)
            rows.append(row)
        self._judge_again(rows)

    def use_shape(self, shape: Shape) -> None:
        """Let the shape of the request be another from now on, where something static changed since the last."""
        self._has_new_shape |= shape is not self._shape
        self._shape = shape

    def keep(self) -> None:
        """Let all hosts stay as they are."""
        self._state.hosts.keep()
        self._state.changes.touch_all()

    def give_back(self) -> None:
        """Let all hosts be as they reported."""
        self._judge_again(self._state.hosts.restore())
        if self._has_new_shape:  # What was made meanwhile holds for hosts of which something was taken.
            self._state.changes.touch_all()

    def _judge_again(self, rows: list[int]) -> None:
        for row in rows:
            self._state.changes.hosts.add(row)
        if rows:
            self._shape.judge_again(np.array(rows, dtype=np.intp))


def _find_topology(request: Request) -> InstanceTopology | None:
    try:
        return topology_of(request)
    except BadRequest:
        return None  # No filter asks for it, or it would have been refused.
