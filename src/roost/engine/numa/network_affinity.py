"""Nearness of host cells to network cards."""

from collections.abc import Iterable, Sequence

from roost.model.devices.numa import NumaCell
from roost.model.devices.topology import NetworkNeeds


def is_near(chosen: Iterable[NumaCell], cells: Sequence[NumaCell], needs: NetworkNeeds) -> bool:
    """Return whether the chosen cells are near the networks of an instance.

    A network without a card near any host cell is ignored.

    Args:
        chosen: the cells of the instance.
        cells: all cells of the host.
        needs: the networks.
    """
    near = list(chosen)
    missing = needs.physnets.difference(*(cell.physnets for cell in near))
    if any(not missing.isdisjoint(cell.physnets) for cell in cells):
        return False
    if not needs.is_tunneled or any(cell.is_tunneled for cell in near):
        return True
    return not any(cell.is_tunneled for cell in cells)
