"""The admission of a guest to a host: memory nodes, devices, and limits."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from roost.engine.numa.cell_choice import place, sockets_of
from roost.engine.numa.cell_limits import read_networks, read_overcommit
from roost.engine.pci.pools import FreePools, choose_devices
from roost.model.devices.topology import PlacedCell
from roost.model.host import HostFacts
from roost.model.work.guest_use import GuestNeeds, GuestUse


class Admission(NamedTuple):
    """The result of an admission."""

    use: GuestUse | None  # the guest's use; None: it is refused
    reason: str = ""  # reasons of a refusal: one sentence per shortfall, separated by semicolons


def admit(
    facts: HostFacts, needs: GuestNeeds, *, shortfalls: Iterable[str] = (), is_packing: bool = False
) -> Admission:
    """Choose the cells and devices of a guest on a host, or describe all shortfalls.

    Amounts are not checked: the guest's allocations claim them. A topology does not exclude a host that reports no
    cells.

    Args:
        facts: of the host, with the use of others.
        needs: of the guest.
        shortfalls: shortfalls besides cells and devices, one sentence each.
        is_packing: whether to prefer the fullest cells to the emptiest.

    Raises:
        BadRequest: the limits are invalid.

    Source:
        nova/compute/claims.py, Claim and MoveClaim.
    """
    reasons = []
    placed = _place(facts, needs, is_packing=is_packing)
    if placed is None:
        reasons.append(_lack_of_cells(facts, needs))
    if shortfall := _lack_of_devices(facts, needs):
        reasons.append(shortfall)
    reasons += shortfalls
    if placed is None or reasons:
        return Admission(None, "; ".join(reasons))
    cells = [each.host_cell for each in placed] or None
    devices = choose_devices(
        facts.pci_pools, needs.pci, cells=cells, sockets=sockets_of(facts), mappings=needs.mappings
    )
    assert devices is not None, "cells are chosen with their devices"
    return Admission(GuestUse(cells=placed, devices=devices))


def _place(facts: HostFacts, needs: GuestNeeds, *, is_packing: bool) -> tuple[PlacedCell, ...] | None:
    """Return the cells of a guest, empty if the guest or the host has none; None if they do not fit."""
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
    cells = "a NUMA cell as the guest wants it" if count == 1 else f"{count:,} NUMA cells as the guest wants them"
    near = ", with its devices near" if needs.pci and facts.pci_pools else ""
    return f"the host lacks room for {cells}{near}"


def _lack_of_devices(facts: HostFacts, needs: GuestNeeds) -> str:
    free = FreePools(facts.pci_pools, sockets=sockets_of(facts))
    missing = [request.describe() for request in needs.pci if not free.take(request, mappings=needs.mappings)]
    return f"the host lacks free PCI devices: {', '.join(missing)}" if missing else ""


def change_of_pages(now: Sequence[int | None], then: Sequence[int | None]) -> str:
    """Describe the change of page sizes by a live migration; empty: no change.

    Args:
        now, then: page size of each cell on source and target, KiB; None: any size. Empty: no cells, so any size.

    Source:
        nova/compute/claims.py, MoveClaim.
    """
    no_sizes = [None] * max(len(now), len(then))
    now, then = list(now) or no_sizes, list(then) or no_sizes
    if now == then:
        return ""
    change = " to ".join(", ".join(map(_size_text, sizes)) for sizes in (now, then))
    return f"the memory pages of a running guest cannot change from {change}"


def _size_text(size: int | None) -> str:
    return "any size" if size is None else f"{size:,} KiB"
