"""An instance on a host: on which of its cells, near to the devices that it takes there."""

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
    wanted: InstanceTopology,
    *,
    overcommit: Overcommit | None,
    needs: NetworkNeeds | None,
    requests: Sequence[PciRequest],
    mappings: Mappings = UNMAPPED,
    is_packing: bool = False,
) -> tuple[PlacedCell, ...] | None:
    """Choose the cells of a host that an instance is on; None where it does not fit.

    Args:
        facts: of the host, with what of it is in use.
        wanted: the cells of the instance.
        overcommit: how much of shared processors and memory may be given out; None: only what there is counts.
        needs: networks to be near to.
        requests: devices to be near to.
        mappings: the providers that are to give these.
        is_packing: whether cells with least left are preferred, rather than those with most.
    """
    if facts.numa is None:
        return None
    near = _build_pci_check(facts, requests, mappings)
    devices: Counter[int | None] = Counter()
    for pool in facts.pci_pools:
        devices[pool.numa_node] += pool.count
    return fit(
        facts.numa,
        wanted,
        overcommit=overcommit,
        needs=needs,
        supports_pci=near,
        devices=devices,
        is_packing=is_packing,
    )


def can_place(
    facts: HostFacts,
    wanted: InstanceTopology,
    *,
    can: Sequence[Verdicts],
    needs: NetworkNeeds | None,
    requests: Sequence[PciRequest],
) -> bool:
    """Say whether ``place`` finds cells, where it is known which of the instance's go onto which of the host's.

    Args:
        facts, wanted, needs, requests: as for ``place``.
        can: what goes onto each cell of the host.
    """
    if facts.numa is None:
        return False
    return fits(
        wanted, can=can, cells=facts.numa.cells, needs=needs, supports_pci=_build_pci_check(facts, requests, UNMAPPED)
    )


def surroundings(facts: HostFacts) -> object:
    """Return all that a host says of what is near to its cells, whatever providers devices are in."""
    cells = () if facts.numa is None else facts.numa.cells
    return [(cell.id, cell.socket, cell.physnets, cell.is_tunneled) for cell in cells], bare_pools(facts)


def sockets_of(facts: HostFacts) -> dict[int, int | None]:
    """Return the socket of each cell of a host, None where it does not say."""
    return {} if facts.numa is None else {cell.id: cell.socket for cell in facts.numa.cells}


def _build_pci_check(facts: HostFacts, requests: Sequence[PciRequest], mappings: Mappings) -> SupportsPci | None:
    """Return what says whether devices are near to some cells; None where there are none to be near to."""
    if not requests or not facts.pci_pools:  # Whether there are any at all is for another filter to say.
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
