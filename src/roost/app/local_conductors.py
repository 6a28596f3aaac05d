"""Conductors in this process: one super conductor, and one conductor per cell."""

from collections.abc import Iterable

from roost.conductor.builds.cell_conductor import CellConductor
from roost.conductor.builds.super_conductor import SuperConductor
from roost.machine import SystemRandom
from roost.ports import Builder, Random
from roost.product import Roost


def build_conductor(
    roost: Roost, builder: Builder, *, cells: Iterable[str] | None = None, random: Random | None = None
) -> SuperConductor:
    """Return a conductor that builds instances on the hosts of a product.

    Args:
        roost: chooses hosts and claims resources.
        builder: builds instances on hosts.
        cells: cells with a conductor; the empty name means hosts without a cell. None: the cells of the current hosts.
        random: source of uuids; None: the system's.
    """
    if cells is None:
        hosts = roost.state.hosts
        cells = {facts.cell for facts, is_alive in zip(hosts.facts, hosts.alive.view.tolist(), strict=True) if is_alive}
    conductors = {cell: CellConductor(product=roost, builder=builder) for cell in cells}
    return SuperConductor(product=roost, cells=conductors, random=random or SystemRandom())
