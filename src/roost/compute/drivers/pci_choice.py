"""The PCI devices of a guest: those that its agent assigned, or free ones."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from roost.engine.pci.pools import choose_devices
from roost.errors import BuildFailed
from roost.model.devices.pci import PciRequest
from roost.model.host import PciPool
from roost.model.work.agent_terms import PciDevice


def check_assigned(devices: Iterable[str], known: Iterable[PciDevice], *, used: Collection[str]) -> None:
    """Check that a guest may use the devices that its agent assigned.

    Args:
        devices: their addresses.
        known: the devices for instances.
        used: addresses of the devices of other guests.

    Raises:
        BuildFailed: a device is missing or in use.
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
    """Return the addresses of devices for a guest.

    Args:
        requests: of the guest.
        devices: the devices for instances.
        used: addresses of the devices of other guests.
        cells: ids of the guest's memory nodes; None: any.
        sockets: socket of each memory node of the host, by id.

    Raises:
        BuildFailed: there are not enough free devices.
    """
    known = [*devices]
    busy = {*used}
    # A device with a function in use is not available as a whole, nor are the functions of a used device.
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
