"""Whether a host has the memory nodes and devices of a guest, and room within its limits, when the guest comes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from roost.engine.numa.cell_choice import place, sockets_of
from roost.engine.numa.cell_limits import read_networks, read_overcommit
from roost.engine.pci.pools import FreePools, choose_devices
from roost.model.devices.topology import PlacedCell
from roost.model.host import HostFacts
from roost.model.work.guest_use import GuestNeeds, GuestUse


class Admission(NamedTuple):
    """The answer to a guest that asks to be on a host."""

    use: GuestUse | None  # what it gets; None: it may not be there
    reason: str = ""  # why not: one sentence a thing that is missing, divided by semicolons


def admit(facts: HostFacts, needs: GuestNeeds, *, lacks: Iterable[str] = (), is_packing: bool = False) -> Admission:
    """Choose the cells and devices of a host that a guest gets, or say all that keeps it away.

    Amounts are not looked at: the allocations of the guest hold them. A host that tells no cells at all has them
    nowhere, so a topology does not keep guests away from it.

    Args:
        facts: of the host now, with what of it is in use by others.
        needs: what the guest wants.
        lacks: what is found to keep it away beside cells and devices, a sentence each.
        is_packing: whether cells with least left are preferred, rather than those with most.

    Raises:
        BadRequest: the limits cannot be meant.

    Source:
        nova/compute/claims.py, Claim and MoveClaim.
    """
    reasons = []
    placed = _place(facts, needs, is_packing=is_packing)
    if placed is None:
        reasons.append(_lack_of_cells(facts, needs))
    lacking = _lack_of_devices(facts, needs)
    if lacking:
        reasons.append(lacking)
    reasons += lacks
    if placed is None or reasons:
        return Admission(None, "; ".join(reasons))
    cells = [each.host_cell for each in placed] or None
    devices = choose_devices(
        facts.pci_pools, needs.pci, cells=cells, sockets=sockets_of(facts), mappings=needs.mappings
    )
    assert devices is not None, "cells are chosen with the devices near to them"
    return Admission(GuestUse(cells=placed, devices=devices))


def _place(facts: HostFacts, needs: GuestNeeds, *, is_packing: bool) -> tuple[PlacedCell, ...] | None:
    """Return the cells of a guest, none where it or the host has none; None where they do not fit."""
    overcommit, networks = read_overcommit(needs.limits), read_networks(needs.limits)
    if needs.topology is None or facts.numa is None:
        return ()
    return place(
        facts,
        needs.topology,
        overcommit=overcommit,
        needs=networks,
        requests=needs.pci,
        mappings=needs.mappings,
        is_packing=is_packing,
    )


def _lack_of_cells(facts: HostFacts, needs: GuestNeeds) -> str:
    count = 0 if needs.topology is None else len(needs.topology.cells)
    what = "a NUMA cell as the guest wants it" if count == 1 else f"{count:,} NUMA cells as the guest wants them"
    near = ", with its devices near" if needs.pci and facts.pci_pools else ""
    return f"the host lacks room for {what}{near}"


def _lack_of_devices(facts: HostFacts, needs: GuestNeeds) -> str:
    free = FreePools(facts.pci_pools, sockets=sockets_of(facts))
    lacking = [request.describe() for request in needs.pci if not free.take(request, mappings=needs.mappings)]
    return f"the host lacks free PCI devices: {', '.join(lacking)}" if lacking else ""


def change_of_pages(now: Sequence[int | None], then: Sequence[int | None]) -> str:
    """Say which pages of a guest that moves while it runs would be of another size; empty: none.

    Args:
        now, then: the size of the pages of each of its cells where it is and where it goes, KiB; None: of no size in
            particular, as all are where there are no cells.

    Source:
        nova/compute/claims.py, MoveClaim.
    """
    nowhere = [None] * max(len(now), len(then))
    now, then = list(now) or nowhere, list(then) or nowhere
    if now == then:
        return ""
    told = " to ".join(", ".join(map(_size_text, sizes)) for sizes in (now, then))
    return f"the memory pages of a guest that runs cannot change from {told}"


def _size_text(size: int | None) -> str:
    return "any size" if size is None else f"{size:,} KiB"
