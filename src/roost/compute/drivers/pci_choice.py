"""Which PCI devices a guest gets: those that its agent says, or such as are free."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from roost.engine.pci.pools import choose_devices
from roost.errors import BuildFailed
from roost.model.devices.pci import PciRequest
from roost.model.host import PciPool
from roost.model.work.agent_terms import PciDevice


def check_given(devices: Iterable[str], known: Iterable[PciDevice], *, used: Collection[str]) -> None:
    """See that a guest may have the devices that its agent says.

    Args:
        devices: their addresses.
        known: the devices that instances may have.
        used: addresses of those that guests have.

    Raises:
        BuildFailed: it may not.
    """
    there = {each.address for each in known}
    for address in devices:
        if address not in there:
            raise BuildFailed(f"the host has no device {address} for guests")
        if address in used:
            raise BuildFailed(f"another guest has device {address}")


def choose_pci(
    requests: Sequence[PciRequest],
    devices: Iterable[PciDevice],
    *,
    used: Iterable[str],
    cells: Sequence[int] | None,
    sockets: Mapping[int, int | None],
) -> tuple[str, ...]:
    """Return the addresses of the devices that a guest gets.

    Args:
        requests: what it wants.
        devices: those that instances may have.
        used: addresses of those that guests have.
        cells: ids of the host's memory nodes that the guest runs on; None: it may run on any.
        sockets: of each of the host's memory nodes.

    Raises:
        BuildFailed: the host lacks free ones.
    """
    known = [*devices]
    busy = {*used}
    # With one of its functions in use a device cannot be given away as a whole, nor the functions of one that is.
    divided = {each.parent_address for each in known if each.address in busy}
    free = [each for each in known if each.address not in busy | divided and each.parent_address not in busy]
    pools = [
        PciPool(
            vendor_id=each.vendor_id,
            product_id=each.product_id,
            dev_type=each.dev_type,
            numa_node=each.numa_node,
            address=each.address,
            tags={**each.tags},
            count=1,
        )
        for each in free
    ]
    chosen = choose_devices(pools, requests, cells=cells, sockets=sockets, mappings={})
    if chosen is None:
        raise BuildFailed(f"the host lacks free PCI devices: {', '.join(each.describe() for each in requests)}")
    return tuple(each.address for each in chosen)
