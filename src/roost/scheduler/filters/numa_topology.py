"""numa_topology: hosts whose NUMA cells fit the instance's cells."""

from collections.abc import Hashable, Sequence

import msgspec
import numpy as np

from roost.engine.columns.types import AnyArray, Mask, Rows
from roost.engine.numa.cell import Overcommit
from roost.engine.numa.cell_choice import can_place, place, surroundings
from roost.engine.numa.fit import Verdicts, fits
from roost.engine.pci.pools import UNMAPPED
from roost.errors import BadRequest
from roost.model.allocation import Mappings
from roost.model.devices.topology import InstanceTopology, PlacedCell
from roost.model.evidence.decision import Limits
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.memoize import Latest
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.numa.bounds import describe_shortfalls
from roost.scheduler.numa.constraints import networks_of, topology_of
from roost.scheduler.numa.host_kinds import group_hosts

_encode = msgspec.msgpack.Encoder(order="sorted").encode


class NumaTopology(BaseFilter[NoOptions]):
    """Keep hosts whose NUMA cells fit the instance's cells, as defined by flavor and image.

    Hosts are grouped by the fit of their cells and by the devices near them; each group is checked once.

    Source:
        nova/scheduler/filters/numa_topology_filter.py, NUMATopologyFilter.
    """

    nova_name = "NUMATopologyFilter"

    def __init__(self, options: NoOptions) -> None:
        super().__init__(options)
        self._topology = Latest(topology_of)

    def reads(self, spec: Spec) -> Reads:
        """Return "facts", because hosts report the use of their cells themselves.

        If Placement allocates the devices, claims change which providers have free devices: then return "use".
        """
        return "use" if spec.queries and spec.pci_requests else "facts"

    def changes_per_instance(self, spec: Spec) -> bool:
        """Return True: instances take processors, pages and devices."""
        return True

    def concerns(self, spec: Spec) -> bool:
        """Return whether flavor and image define a topology, even an invalid one, which ``check`` refuses."""
        try:
            return self._topology(spec.request) is not None
        except BadRequest:
            return True

    def check(self, spec: Spec) -> None:
        """Refuse contradictory flavors and images.

        Raises:
            BadRequest: see ``topology_of``.
        """
        self._topology(spec.request)

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: topology, networks and devices."""
        return self._topology(spec.request), networks_of(spec.request), _devices(spec)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts whose cells fit the whole instance; reject hosts without cells."""
        topology = self._topology(spec.request)
        if topology is None:
            return np.ones(len(hosts), dtype=np.bool_)
        verdicts: Mask = np.zeros(len(hosts), dtype=np.bool_)
        ratios = _overcommit(hosts)
        for can, positions in group_hosts(hosts, topology, cpu=ratios["cpu"], memory=ratios["memory"]):
            if fits(topology, verdicts=can):
                verdicts[positions] = self._are_near(hosts, positions, can, spec=spec)
        return verdicts

    def _are_near(self, hosts: HostView, positions: Rows, can: Sequence[Verdicts], *, spec: Spec) -> Mask:
        """Return which of these hosts have fitting cells near the request's networks and devices.

        Args:
            can: verdicts about the cells, equal for all of these hosts.
        """
        topology, needs, requests = self._topology(spec.request), networks_of(spec.request), spec.pci_requests
        assert topology is not None
        if requests and hosts.has_mappings(spec.queries):
            is_near = [
                any(
                    self.accepts(hosts, spec, at=at, mappings=mappings) for mappings in hosts.mappings(at, spec.queries)
                )
                for at in positions.tolist()
            ]
            return np.array(is_near, dtype=np.bool_)
        if not requests and needs is None:
            return np.ones(len(positions), dtype=np.bool_)
        near = hosts.distinct_values("numa surroundings", surroundings).codes[positions]
        _, first, inverse = np.unique(near, return_index=True, return_inverse=True)
        verdicts = [
            can_place(hosts.facts(at), topology, verdicts=can, needs=needs, requests=requests)
            for at in positions[first].tolist()
        ]
        mask: Mask = np.array(verdicts, dtype=np.bool_)[inverse]
        return mask

    def accepts(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        """Return whether a host has fitting cells near the devices of these providers."""
        topology = self._topology(spec.request)
        return topology is None or _place(hosts, at, topology, spec=spec, mappings=mappings) is not None

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return each host's overcommit of cells, and the required networks."""
        if self._topology(spec.request) is None:
            return [{} for _ in range(len(hosts))]
        needs = networks_of(spec.request)
        networks: dict[str, dict[str, bool | list[str]]] = {}
        if needs is not None:
            networks["network_metadata"] = {"physnets": sorted(needs.physnets), "tunneled": needs.is_tunneled}
        return [
            {}
            if facts.numa is None
            else {"numa_topology": {"cpu_allocation_ratio": cpu, "ram_allocation_ratio": memory, **networks}}
            for facts, (cpu, memory) in zip(hosts.all_facts(), _overcommit(hosts).tolist(), strict=True)
        ]

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return the shortfall of each host's cells; empty if no single shortfall explains the rejection."""
        topology = self._topology(spec.request)
        return [""] * len(hosts) if topology is None else describe_shortfalls(hosts, topology)

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        topology = self._topology(spec.request)
        count = 0 if topology is None else len(topology.cells)
        noun = f"{count:,} NUMA cells" if count > 1 else "a NUMA cell"
        return f"lack room for {noun} as required by the flavor"


def _place(
    hosts: HostView, position: int, topology: InstanceTopology, *, spec: Spec, mappings: Mappings = UNMAPPED
) -> tuple[PlacedCell, ...] | None:
    """Return the host cells for an instance, near its devices; None if it does not fit."""
    cpu, memory = _overcommit(hosts)[position].item()
    return place(
        hosts.facts(position),
        topology,
        overcommit=Overcommit(cpu=cpu, memory=memory),
        needs=networks_of(spec.request),
        requests=spec.pci_requests,
        mappings=mappings,
    )


def _devices(spec: Spec) -> bytes:
    """Return the device requirements that verdicts depend on, encoded."""
    requests = spec.pci_requests
    return _encode([(item.count, item.alternatives, item.source, item.numa_policy) for item in requests])


def _overcommit(hosts: HostView) -> AnyArray:
    """Return the allocation ratios of shared processors and memory: shape (hosts,), with the fields cpu and memory."""
    return hosts.memoize(("numa overcommit", hosts.epoch), _build_overcommit)


def _build_overcommit(hosts: HostView) -> AnyArray:
    ratios = np.empty(len(hosts), dtype=[("cpu", np.float64), ("memory", np.float64)])
    ratios["cpu"], ratios["memory"] = hosts.column("cpu_allocation_ratio"), hosts.allocation_ratio("MEMORY_MB")
    return ratios
