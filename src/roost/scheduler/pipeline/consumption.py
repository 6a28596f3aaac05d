"""Consumption that hosts report only later: NUMA cells and devices of the instances of one request.

While one request is decided, each instance's cells and devices are subtracted from the reported facts, for the next
instance. Afterwards the reported facts are restored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from roost.engine.columns.state import State
from roost.engine.numa.cell_choice import place, sockets_of
from roost.engine.numa.cell_limits import read_overcommit
from roost.engine.numa.cell_usage import add_instance
from roost.engine.pci.pools import UNMAPPED, subtract_requests
from roost.errors import BadRequest
from roost.model.allocation import Mappings
from roost.model.devices.pci import PciRequest
from roost.model.devices.topology import InstanceTopology
from roost.model.evidence.decision import Pick
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.scheduler.numa.constraints import networks_of, topology_of
from roost.scheduler.shape.shape import Shape


class ReportedDemand:
    """The demand of each instance of a request on a host's NUMA cells and devices.

    Args:
        request: the request.
        pci_requests: all its device requests.
        is_packing: whether to prefer cells with the least capacity left.

    Source:
        nova/scheduler/host_manager.py, HostState.consume_from_request.
    """

    def __init__(self, request: Request, pci_requests: Sequence[PciRequest], *, is_packing: bool = False) -> None:
        self._is_packing = is_packing
        self._topology = _find_topology(request)
        self._networks = networks_of(request)
        self._pci_requests = pci_requests

    @property
    def is_present(self) -> bool:
        """Whether the instance needs NUMA cells or devices."""
        return self._topology is not None or bool(self._pci_requests)

    def take_from(self, facts: HostFacts, *, limits: Mapping[str, Any], mappings: Mappings = UNMAPPED) -> HostFacts:
        """Return the facts of a host with one more instance.

        If the host lacks part of the demand, because no filter checked it, this part is not subtracted.

        Args:
            facts: the present facts; returned unchanged if nothing is subtracted.
            limits: the limits passed to the host.
            mappings: the providers that serve the instance on the host.
        """
        numa, cells = facts.numa, None
        if self._topology is not None and numa is not None:
            placed_cells = place(
                facts,
                self._topology,
                overcommit=read_overcommit(limits),
                needs=self._networks,
                requests=self._pci_requests,
                mappings=mappings,
                is_packing=self._is_packing,
            )
            if placed_cells is not None:
                numa = add_instance(numa, placed_cells)
                cells = [cell.host_cell for cell in placed_cells]
        pools = facts.pci_pools
        if self._pci_requests and pools:
            sockets = sockets_of(facts)
            pools = (
                subtract_requests(pools, self._pci_requests, cells=cells, sockets=sockets, mappings=mappings) or pools
            )
        if numa is facts.numa and pools is facts.pci_pools:
            return facts
        return msgspec.structs.replace(facts, numa=numa, pci_pools=pools)


class Consumption:
    """The consumption of one request's instances on the hosts of a state, until ``restore``."""

    def __init__(self, state: State, shape: Shape, *, is_packing: bool) -> None:
        self._state = state
        self._shape = shape
        self._has_new_shape = False
        self._demand = ReportedDemand(shape.spec.request, shape.spec.pci_requests, is_packing=is_packing)

    def take(self, picks: Iterable[tuple[int, Mappings, Pick]]) -> None:
        """Subtract one instance from each host.

        Args:
            picks: for each instance, the row of its host, the providers of its request groups, and its pick.
        """
        hosts = self._state.hosts
        rows = []
        for row, mappings, pick in picks:
            facts = self._demand.take_from(hosts.facts[row], limits=pick.limits, mappings=mappings)
            hosts.consume(row, facts, io_ops=uuid_bytes(pick.instance_uuid) not in self._state.tasks)
            rows.append(row)
        self._judge_again(rows)

    def use_shape(self, shape: Shape) -> None:
        """Continue with another shape of the request, if one was compiled meanwhile."""
        self._has_new_shape |= shape is not self._shape
        self._shape = shape

    def keep(self) -> None:
        """Keep the consumption on all hosts; the I/O operation of a move has ended, because moves follow each other."""
        hosts, has_ended = self._state.hosts, self._shape.spec.moved_uuid is not None
        rows = list(hosts.starting)
        if hosts.keep_consumed(has_ended=has_ended) or self._has_new_shape:
            self._state.changes.touch_all()
        else:
            self._judge_again(rows)

    def restore(self) -> None:
        """Restore the reported facts of all hosts."""
        self._judge_again(self._state.hosts.restore())
        if self._has_new_shape:  # Shapes compiled in the meantime include the consumption.
            self._state.changes.touch_all()

    def _judge_again(self, rows: list[int]) -> None:
        for row in rows:
            self._state.changes.hosts.add(row)
        if rows:
            self._shape.verdicts.judge_again(np.array(rows, dtype=np.intp))


def _find_topology(request: Request) -> InstanceTopology | None:
    try:
        return topology_of(request)
    except BadRequest:
        return None  # No enabled filter reads the topology; otherwise the request is refused earlier.
