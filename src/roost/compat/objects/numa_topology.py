"""NUMA topologies of instances, and their fit on a host."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from roost.compat.numa import topology_from
from roost.compat.objects.devices import read_devices
from roost.compat.objects.record import Record
from roost.engine.numa.cell import Overcommit
from roost.engine.numa.cell_choice import place
from roost.engine.pci.pools import UNMAPPED
from roost.model.allocation import Mappings
from roost.model.devices.topology import InstanceTopology, NetworkNeeds
from roost.model.host import HostFacts
from roost.model.request import Request
from roost.scheduler.numa.constraints import topology_of


@dataclass(slots=True, kw_only=True)
class NUMATopologyLimits(Record):
    """Overcommit of a host's NUMA cells, and the networks that must be near."""

    cpu_allocation_ratio: float
    ram_allocation_ratio: float
    network_metadata: Any = None


@dataclass(slots=True, kw_only=True)
class InstanceNUMATopology(Record):
    """The requested NUMA cells of an instance."""

    requested: InstanceTopology
    cells: list[SimpleNamespace] = field(default_factory=list)


def numa_get_constraints(flavor: Any, image_meta: Any) -> InstanceNUMATopology | None:
    """Return the NUMA cells requested by flavor and image; None: none.

    Raises:
        BadRequest: flavor and image conflict.
    """
    return show_topology(topology_of(Request(flavor=flavor, image=image_meta)))


def show_topology(requested: InstanceTopology | None) -> InstanceNUMATopology | None:
    """Return the NUMA cells of an instance under Nova's names."""
    if requested is None:
        return None
    cells = [
        SimpleNamespace(
            id=cell.id,
            cpuset=set(cell.cpus),
            pcpuset=set(cell.pcpus),
            memory=cell.memory_mb,
            pagesize=cell.page_size,
            cpu_policy=cell.policy,
            cpu_thread_policy=cell.threads,
        )
        for cell in requested.cells
    ]
    return InstanceNUMATopology(requested=requested, cells=cells)


def numa_fit_instance_to_host(
    host_topology: Any,
    instance_topology: InstanceNUMATopology,
    limits: NUMATopologyLimits | None = None,
    pci_requests: Any = None,
    pci_stats: Any = None,
    provider_mapping: Mappings | None = None,
) -> InstanceNUMATopology | None:
    """Return the topology if its cells fit on the host, near their networks and devices; None: they do not fit."""
    networks = None if limits is None else limits.network_metadata
    placed = place(
        HostFacts(numa=topology_from(host_topology), pci_pools=() if pci_stats is None else pci_stats.facts.pci_pools),
        instance_topology.requested,
        overcommit=None
        if limits is None
        else Overcommit(cpu=limits.cpu_allocation_ratio, memory=limits.ram_allocation_ratio),
        needs=None
        if networks is None
        else NetworkNeeds(physnets=frozenset(networks.physnets), is_tunneled=networks.tunneled),
        requests=read_devices(pci_requests),
        mappings=UNMAPPED if provider_mapping is None else provider_mapping,
    )
    return None if placed is None else instance_topology
