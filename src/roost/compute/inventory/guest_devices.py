"""Addresses of guests' devices from the driver, for devices that were claimed without addresses."""

from collections.abc import Mapping

import msgspec

from roost.errors import BadSettings
from roost.model.work.guest_use import GuestUse


def add_addresses(
    node: str, uses: Mapping[str, GuestUse], *, known: Mapping[str, tuple[str, ...]]
) -> dict[str, GuestUse]:
    """Find the uses with devices but no addresses; return them with addresses from the driver, by holder.

    Args:
        node: name of the node.
        uses: uses of instances and migrations, by uuid.
        known: addresses of each guest's devices from the driver, by uuid of the instance.

    Raises:
        BadSettings: the driver does not report the devices of a guest.
    """
    found = {}
    for holder, use in uses.items():
        count = sum(pool.count for pool in use.devices)
        if not count or use.addresses:
            continue
        addresses = known.get(holder, ())
        if len(addresses) != count:
            devices = f"{count} PCI device{'s' if count > 1 else ''} of node {node}"
            raise BadSettings(
                "agent.pci_in_placement",
                f"cannot be switched on: {holder} has {devices}, and the driver does not say which; "
                "switch it on after such guests are deleted or moved, and their moves confirmed or reverted",
            )
        found[holder] = msgspec.structs.replace(use, addresses=addresses)
    return found
