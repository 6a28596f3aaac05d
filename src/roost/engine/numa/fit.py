"""Assignment of instance cells to host cells."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from roost.engine.numa.cell import Overcommit, place_cell
from roost.engine.numa.network_affinity import is_near
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.devices.topology import InstanceTopology, NetworkNeeds, PlacedCell

# Upper bound on tried sets of host cells: all sets of 16 cells. No real host has more.
_SETS_MAX = 2**16

_DEVICELESS: Mapping[int | None, int] = MappingProxyType({})

SupportsPci = Callable[[Sequence[int]], bool]
# Of one host cell: whether each instance cell fits on it.
Verdicts = tuple[bool, ...]


def fit(
    host: NumaTopology,
    topology: InstanceTopology,
    *,
    overcommit: Overcommit | None,
    needs: NetworkNeeds | None = None,
    supports_pci: SupportsPci | None = None,
    devices: Mapping[int | None, int] = _DEVICELESS,
    is_packing: bool = False,
) -> tuple[PlacedCell, ...] | None:
    """Choose a host cell for each instance cell.

    Host cells are tried in order of preference, instance cells in their own order. The first assignment with
    fitting pairs, near networks and supported devices wins. The search stops after 65,536 sets of cells.

    Args:
        host: totals and use of the host's cells.
        topology: the cells of the instance.
        overcommit: ratios for shared processors and memory; None: check only totals.
        needs: networks that the cells must be near.
        supports_pci: given the ids of some cells, in order, returns whether the requested devices are free near
            them; None: no devices requested.
        devices: free devices near each cell. Instances with devices prefer the cells with most, others those with
            least.
        is_packing: whether to prefer the cells with least free resources, rather than those with most.

    Returns:
        One placed cell per instance cell, in order; None if the instance does not fit.
    """
    if len(host.cells) < len(topology.cells):
        return None
    cells = _sort_cells(host.cells, topology, is_packing=is_packing)
    if devices and len(cells) > len(topology.cells):
        cells.sort(key=lambda cell: devices.get(cell.id, 0), reverse=supports_pci is not None)
    pairs: dict[tuple[int, int], PlacedCell | None] = {}

    def place_at(at: int, depth: int) -> PlacedCell | None:
        if (at, depth) not in pairs:
            pairs[at, depth] = place_cell(
                cells[at], topology.cells[depth], overcommit=overcommit, reserved=topology.reserved_cpus(depth)
            )
        return pairs[at, depth]

    arrangement = _find_arrangement(
        len(cells),
        len(topology.cells),
        fits_at=lambda *pair: place_at(*pair) is not None,
        is_accepted=partial(_is_accepted, cells, needs=needs, supports_pci=supports_pci),
    )
    if arrangement is None:
        return None
    return tuple(cell for depth, at in enumerate(arrangement) if (cell := place_at(at, depth)) is not None)


def fits(
    topology: InstanceTopology,
    *,
    verdicts: Sequence[Verdicts],
    cells: Sequence[NumaCell] = (),
    needs: NetworkNeeds | None = None,
    supports_pci: SupportsPci | None = None,
) -> bool:
    """Return whether ``fit`` finds an assignment, given the verdicts on pairs of cells.

    Args:
        topology, needs, supports_pci: as for ``fit``.
        verdicts: the instance cells that fit on each host cell.
        cells: the host cells, needed for networks and devices.
    """
    is_accepted = partial(_is_accepted, cells, needs=needs, supports_pci=supports_pci)
    arrangement = _find_arrangement(
        len(verdicts), len(topology.cells), fits_at=lambda at, depth: verdicts[at][depth], is_accepted=is_accepted
    )
    return arrangement is not None


def _is_accepted(
    cells: Sequence[NumaCell],
    arrangement: Sequence[int],
    *,
    needs: NetworkNeeds | None,
    supports_pci: SupportsPci | None,
) -> bool:
    """Return whether devices and networks are near the chosen host cells."""
    if needs is None and supports_pci is None:
        return True
    chosen = [cells[at] for at in arrangement]
    if supports_pci is not None and not supports_pci([cell.id for cell in chosen]):
        return False
    return needs is None or is_near(chosen, cells, needs)


def _sort_cells(cells: Sequence[NumaCell], topology: InstanceTopology, *, is_packing: bool) -> list[NumaCell]:
    """Sort host cells by preference; keep the order if all are needed."""
    if len(cells) == len(topology.cells):
        return list(cells)
    ordered = sorted(cells, key=lambda cell: cell.free_memory_mb, reverse=not is_packing)
    if topology.cells[0].is_pinned:
        return sorted(ordered, key=lambda cell: len(cell.free_pcpus), reverse=not is_packing)
    return sorted(ordered, key=lambda cell: cell.cpu_usage, reverse=is_packing)


def _find_arrangement(
    count: int, length: int, *, fits_at: Callable[[int, int], bool], is_accepted: Callable[[Sequence[int]], bool]
) -> tuple[int, ...] | None:
    """Find the first acceptable arrangement of ``length`` out of ``count`` numbers, in lexical order.

    The remaining choices depend on the set of used numbers, not on its order, so failed sets are not tried again.
    """
    dead: set[int] = set()
    arrangement: list[int] = []

    def search(taken: int) -> bool:
        if len(arrangement) == length:
            return is_accepted(arrangement)
        for at in range(count):
            more = taken | 1 << at
            if more == taken or more in dead or not fits_at(at, len(arrangement)):
                continue
            if len(dead) >= _SETS_MAX:
                return False
            arrangement.append(at)
            if search(more):
                return True
            arrangement.pop()
            dead.add(more)
        return False

    return tuple(arrangement) if search(0) else None
