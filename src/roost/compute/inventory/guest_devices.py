"""The devices of guests on a node whose amounts the agent claimed, and whose addresses the driver chose."""

from collections.abc import Mapping

import msgspec

from roost.errors import BadSettings
from roost.model.work.guest_use import GuestUse


def with_addresses(
    node: str, uses: Mapping[str, GuestUse], *, told: Mapping[str, tuple[str, ...]]
) -> dict[str, GuestUse]:
    """Return the uses of a node without device addresses, with them, by holder.

    Args:
        node: name of the node.
        uses: uses of instances and migrations, by uuid.
        told: the driver's addresses of each guest's devices, by uuid of the instance.

    Raises:
        BadSettings: the driver does not know the devices of a guest.
    """
    named = {}
    for holder, use in uses.items():
        count = sum(pool.count for pool in use.devices)
        if not count or use.addresses:
            continue
        addresses = told.get(holder, ())
        if len(addresses) != count:
            devices = f"{count} PCI device{'s' if count > 1 else ''} of node {node}"
            raise BadSettings(
                "agent.pci_in_placement",
                f"cannot be switched on: {holder} has {devices}, and the driver does not say which; delete or move "
                "away what has them, and settle moves, while it is off",
            )
        named[holder] = msgspec.structs.replace(use, addresses=addresses)
    return named
