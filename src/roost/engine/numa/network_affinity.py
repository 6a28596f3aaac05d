"""Cells of a host that are near to the cards of networks."""

from collections.abc import Iterable, Sequence

from roost.model.devices.numa import NumaCell
from roost.model.devices.topology import NetworkNeeds


def is_near(chosen: Iterable[NumaCell], cells: Sequence[NumaCell], needs: NetworkNeeds) -> bool:
    """Say whether some cells of a host are near to the networks of an instance.

    A network whose card no cell of the host is near to asks for none.

    Args:
        chosen: the cells that the instance would be on.
        cells: all of the host.
        needs: the networks.
    """
    near = list(chosen)
    missing = needs.physnets.difference(*(cell.physnets for cell in near))
    if any(not missing.isdisjoint(cell.physnets) for cell in cells):
        return False
    if not needs.is_tunneled or any(cell.is_tunneled for cell in near):
        return True
    return not any(cell.is_tunneled for cell in cells)
