"""An instance on the memory nodes of a host: which of its cells on which."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from roost.engine.numa.cell import Overcommit, place_cell
from roost.engine.numa.network_affinity import is_near
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.devices.topology import InstanceTopology, NetworkNeeds, PlacedCell

# Sets of host cells that are tried at most. A host with 16 cells has as many, and no real one has more.
_SETS_MAX = 2**16

_DEVICELESS: Mapping[int | None, int] = MappingProxyType({})

SupportsPci = Callable[[Sequence[int]], bool]
# Of one cell of a host: whether each cell of the instance goes onto it.
Verdicts = tuple[bool, ...]


def fit(
    host: NumaTopology,
    wanted: InstanceTopology,
    *,
    overcommit: Overcommit | None,
    needs: NetworkNeeds | None = None,
    supports_pci: SupportsPci | None = None,
    devices: Mapping[int | None, int] = _DEVICELESS,
    is_packing: bool = False,
) -> tuple[PlacedCell, ...] | None:
    """Choose a cell of the host for each cell of an instance.

    Cells of the host are tried in order of preference, cells of the instance as they are, and the first way in which
    every pair fits, networks are near and devices are supported is taken. At most 65,536 sets of cells are looked at;
    a host on which none of them will do is refused.

    Args:
        host: what is there and what of it is in use.
        wanted: what is asked for.
        overcommit: how much of shared processors and memory may be given out; None: only what there is counts.
        needs: networks to be near to.
        supports_pci: says of the ids of some cells, in order, whether the devices of the request are to be had near
            them; None: there are none to be had.
        devices: how many are free near each cell. Cells with most are preferred by instances that want devices, those
            with least by others.
        is_packing: whether the cells with least left are preferred, rather than those with most.

    Returns:
        One placed cell for each of the instance, in order; None where it does not fit.
    """
    if len(host.cells) < len(wanted.cells):
        return None
    cells = _sort_cells(host.cells, wanted, is_packing=is_packing)
    if devices and len(cells) > len(wanted.cells):
        cells.sort(key=lambda cell: devices.get(cell.id, 0), reverse=supports_pci is not None)
    pairs: dict[tuple[int, int], PlacedCell | None] = {}

    def placed(at: int, depth: int) -> PlacedCell | None:
        if (at, depth) not in pairs:
            pairs[at, depth] = place_cell(
                cells[at], wanted.cells[depth], overcommit=overcommit, reserved=wanted.reserved_cpus(depth)
            )
        return pairs[at, depth]

    way = _find_arrangement(
        len(cells),
        len(wanted.cells),
        can=lambda *pair: placed(*pair) is not None,
        accepted=partial(_is_accepted, cells, needs=needs, supports_pci=supports_pci),
    )
    if way is None:
        return None
    return tuple(made for depth, at in enumerate(way) if (made := placed(at, depth)) is not None)


def fits(
    wanted: InstanceTopology,
    *,
    can: Sequence[Verdicts],
    cells: Sequence[NumaCell] = (),
    needs: NetworkNeeds | None = None,
    supports_pci: SupportsPci | None = None,
) -> bool:
    """Say whether ``fit`` finds a way, where it is known what goes onto which cell.

    Args:
        wanted, needs, supports_pci: as for ``fit``.
        can: what goes onto each cell of the host.
        cells: these, where networks or devices count.
    """
    accepted = partial(_is_accepted, cells, needs=needs, supports_pci=supports_pci)
    return (
        _find_arrangement(len(can), len(wanted.cells), can=lambda at, depth: can[at][depth], accepted=accepted)
        is not None
    )


def _is_accepted(
    cells: Sequence[NumaCell], way: Sequence[int], *, needs: NetworkNeeds | None, supports_pci: SupportsPci | None
) -> bool:
    """Say whether devices and networks are near to some cells of a host."""
    if needs is None and supports_pci is None:
        return True
    chosen = [cells[at] for at in way]
    if supports_pci is not None and not supports_pci([cell.id for cell in chosen]):
        return False
    return needs is None or is_near(chosen, cells, needs)


def _sort_cells(cells: Sequence[NumaCell], wanted: InstanceTopology, *, is_packing: bool) -> list[NumaCell]:
    """Return cells of a host in order of preference; where all are needed, as they are."""
    if len(cells) == len(wanted.cells):
        return list(cells)
    ordered = sorted(cells, key=lambda cell: cell.free_memory_mb, reverse=not is_packing)
    if wanted.cells[0].is_pinned:
        return sorted(ordered, key=lambda cell: len(cell.free_pcpus), reverse=not is_packing)
    return sorted(ordered, key=lambda cell: cell.cpu_usage, reverse=is_packing)


def _find_arrangement(
    count: int, length: int, *, can: Callable[[int, int], bool], accepted: Callable[[Sequence[int]], bool]
) -> tuple[int, ...] | None:
    """Return the first arrangement of ``length`` of ``count`` things, in the order of numbers, that will do.

    What can follow depends on which things are taken and not on their order, so a set that led nowhere is not tried
    again.
    """
    dead: set[int] = set()
    way: list[int] = []

    def search(taken: int) -> bool:
        if len(way) == length:
            return accepted(way)
        for at in range(count):
            more = taken | 1 << at
            if more == taken or more in dead or not can(at, len(way)):
                continue
            if len(dead) >= _SETS_MAX:
                return False
            way.append(at)
            if search(more):
                return True
            way.pop()
            dead.add(more)
        return False

    return tuple(way) if search(0) else None
