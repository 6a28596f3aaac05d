"""Conductors over a product: one super conductor, and one conductor a cell, all in this process."""

from collections.abc import Iterable

from roost.conductor.builds.cell_conductor import CellConductor
from roost.conductor.builds.super_conductor import SuperConductor
from roost.machine import SystemRandom
from roost.ports import Builder, Random
from roost.product import Roost


def build_conductor(
    roost: Roost, builder: Builder, *, cells: Iterable[str] | None = None, random: Random | None = None
) -> SuperConductor:
    """Return who builds instances on the hosts of a product.

    Args:
        roost: chooses, and keeps what is claimed.
        builder: builds on hosts.
        cells: those that have a conductor, by the name that hosts give as theirs; the empty name is that of hosts in
            none. None: the cells of the hosts there are now.
        random: gives uuids; None: the machine's.
    """
    if cells is None:
        hosts = roost.state.hosts
        cells = {facts.cell for facts, is_alive in zip(hosts.facts, hosts.alive.view.tolist(), strict=True) if is_alive}
    conductors = {cell: CellConductor(product=roost, builder=builder) for cell in cells}
    return SuperConductor(product=roost, cells=conductors, random=random or SystemRandom())
