"""Choice of host cells for an instance, near its devices."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from roost.engine.numa.cell import Overcommit
from roost.engine.numa.fit import SupportsPci, Verdicts, fit, fits
from roost.engine.pci.pools import UNMAPPED, bare_pools, supports
from roost.model.allocation import Mappings
from roost.model.devices.pci import PciRequest
from roost.model.devices.topology import InstanceTopology, NetworkNeeds, PlacedCell
from roost.model.host import HostFacts, PciPool


def place(
    facts: HostFacts,
    topology: InstanceTopology,
    *,
    overcommit: Overcommit | None,
    needs: NetworkNeeds | None,
    requests: Sequence[PciRequest],
    mappings: Mappings = UNMAPPED,
    is_packing: bool = False,
) -> tuple[PlacedCell, ...] | None:
    """Choose the host cells of an instance; None if it does not fit.

    Args:
        facts: of the host, with its use.
        topology: the cells of the instance.
        overcommit: ratios for shared processors and memory; None: check only totals.
        needs: networks that the cells must be near.
        requests: devices that the cells must be near.
        mappings: the providers of the devices.
        is_packing: whether to prefer the cells with least free resources, rather than those with most.
    """
    if facts.numa is None:
        return None
    supports_pci = _build_pci_check(facts, requests, mappings)
    devices: Counter[int | None] = Counter()
    for pool in facts.pci_pools:
        devices[pool.numa_node] += pool.count
    return fit(
        facts.numa,
        topology,
        overcommit=overcommit,
        needs=needs,
        supports_pci=supports_pci,
        devices=devices,
        is_packing=is_packing,
    )


def can_place(
    facts: HostFacts,
    topology: InstanceTopology,
    *,
    verdicts: Sequence[Verdicts],
    needs: NetworkNeeds | None,
    requests: Sequence[PciRequest],
) -> bool:
    """Return whether ``place`` finds cells, given the verdicts on pairs of cells.

    Args:
        facts, topology, needs, requests: as for ``place``.
        verdicts: the instance cells that fit on each host cell.
    """
    if facts.numa is None:
        return False
    return fits(
        topology,
        verdicts=verdicts,
        cells=facts.numa.cells,
        needs=needs,
        supports_pci=_build_pci_check(facts, requests, UNMAPPED),
    )


def surroundings(facts: HostFacts) -> object:
    """Return the sockets, networks and devices of a host's cells, without the providers of the devices."""
    cells = () if facts.numa is None else facts.numa.cells
    return [(cell.id, cell.socket, cell.physnets, cell.is_tunneled) for cell in cells], bare_pools(facts)


def sockets_of(facts: HostFacts) -> dict[int, int | None]:
    """Return the socket of each cell of a host, None if unknown."""
    return {} if facts.numa is None else {cell.id: cell.socket for cell in facts.numa.cells}


def _build_pci_check(facts: HostFacts, requests: Sequence[PciRequest], mappings: Mappings) -> SupportsPci | None:
    """Build the check for devices near cells; None without requests or devices."""
    if not requests or not facts.pci_pools:  # Another filter refuses hosts without devices.
        return None
    return partial(_are_near, facts.pci_pools, requests, sockets=sockets_of(facts), mappings=mappings)


def _are_near(
    pools: Sequence[PciPool],
    requests: Sequence[PciRequest],
    cells: Sequence[int],
    *,
    sockets: Mapping[int, int | None],
    mappings: Mappings,
) -> bool:
    return supports(pools, requests, cells=cells, sockets=sockets, mappings=mappings)
