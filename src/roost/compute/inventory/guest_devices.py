"""Which devices guests have of a node, where the agent let them have some and the driver chose which."""

from collections.abc import Mapping

import msgspec

from roost.errors import BadSettings
from roost.model.work.guest_use import GuestUse


def with_addresses(
    node: str, uses: Mapping[str, GuestUse], *, told: Mapping[str, tuple[str, ...]]
) -> dict[str, GuestUse]:
    """Return with the addresses of its devices what each has of a node without them, by the same holder.

    Args:
        node: its name.
        uses: what instances, and operations that move them, have of it, by uuid.
        told: by the driver: which devices each guest has, by uuid of the instance.

    Raises:
        BadSettings: of one of them that cannot be told.
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
