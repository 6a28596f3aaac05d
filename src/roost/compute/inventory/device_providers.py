"""PCI devices in Placement: their providers below the node, and the guests' allocations on these."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from roost.compute.inventory.placement_devices import DEVICE_TRAIT, OfferedDevices, Slot, match_devices, provider_name
from roost.compute.inventory.provider_config import OWNER_TRAIT
from roost.compute.providers.held_allocations import Allocations, Holding
from roost.compute.providers.provider_tree import ProviderTree
from roost.compute.report.report_client import ReportClient
from roost.errors import BadSettings
from roost.model.work.agent_terms import PciDevice
from roost.model.work.device_spec import DeviceSpec
from roost.observe import log

Holders = Mapping[str, Sequence[str]]  # uuid of an instance or a migration -> addresses of its devices


class CountedDevices(NamedTuple):
    """The devices of a node in Placement's inventories, and their holders."""

    offered: OfferedDevices = OfferedDevices()
    holders: Holders = MappingProxyType({})


class DeviceProviders:
    """Adds the devices of nodes to their provider trees.

    Args:
        report: the report client of the host.
        is_on: whether devices get inventories in Placement.
        specs: the offered devices and their classes; empty: all.
    """

    def __init__(self, report: ReportClient, *, is_on: bool, specs: Sequence[DeviceSpec] = ()) -> None:
        self._report, self._specs = report, specs
        self.is_on = is_on

    def find_offered(self, devices: Iterable[PciDevice]) -> OfferedDevices:
        """Return the offered devices of a node.

        Raises:
            BadSettings: see ``match_devices``.
        """
        return match_devices(devices, self._specs)

    def update(
        self, tree: ProviderTree, node: str, devices: CountedDevices, *, held: Allocations | None
    ) -> Allocations | None:
        """Add the devices of a node to its tree, and claim those of its guests.

        Devices of a guest without allocations in this tree are reserved, so that no other guest gets them. A missing
        device keeps its provider while there are allocations on it.

        Args:
            tree: the tree from the driver.
            node: name of the root.
            devices: devices of the node, with their holders.
            held: the new allocations of a reshape, edited in place; None: no reshape so far.

        Returns:
            The new allocations, if a reshape is needed; else None.

        Raises:
            BadSettings: another provider has the name of a device's provider, or devices are in Placement although the
                settings exclude them.
        """
        present = _present(tree, node)
        if not self.is_on:
            if present:
                raise BadSettings("agent.pci_in_placement", _presence_problem(node, present))
            return held
        slots = {provider_name(node, slot.address): slot for slot in devices.offered.slots}
        for name, slot in slots.items():
            _check_free(tree, node, name=name, slot=slot)
        for name in [each for each in present if each not in slots]:
            self._drop(tree, name)
        missing = {name: self._missing(tree, name, slot=slot, holders=devices.holders) for name, slot in slots.items()}
        uuids = {name: tree.data(name).uuid if tree.exists(name) else tree.new_child(name, node) for name in slots}
        if any(missing.values()):
            known = held or self._report.get_allocations_for_provider_tree(tree.data(node).uuid)
            below = {uuids[name]: slot for name, slot in slots.items()}
            left = {
                name: _claim_missing(known, uuids[name], below, holders=devices.holders, missing=missing[name])
                for name in slots
            }
            held, missing = held if left == missing else known, left
        for name, slot in slots.items():
            record = _record(len(slot.devices), reserved=missing[name])
            tree.update_inventory(uuids[name], {slot.resource_class: record})
            tree.update_traits(uuids[name], {DEVICE_TRAIT, OWNER_TRAIT, *slot.traits})
        return held

    def providers(self, tree: ProviderTree, node: str, devices: OfferedDevices) -> dict[str, str]:
        """Return the uuid of each device's provider, by address; empty if devices are not in Placement."""
        found: dict[str, str] = {}
        for slot in devices.slots if self.is_on else ():
            uuid = tree.data(provider_name(node, slot.address)).uuid
            found |= dict.fromkeys(slot.devices, uuid)
        return found

    def _missing(self, tree: ProviderTree, name: str, *, slot: Slot, holders: Holders) -> int:
        """Return the number of a slot's devices that guests use without an allocation."""
        used = _count(slot, {address for addresses in holders.values() for address in addresses})
        if not used or not tree.exists(name):
            return used
        provider = tree.data(name)
        if provider.inventory and slot.resource_class not in provider.inventory:
            return 0  # Its allocations are of another class, which cannot be deleted yet.
        held = self._report.get_allocations_for_resource_provider(provider.uuid)
        claimed: int = sum(each["resources"].get(slot.resource_class, 0) for each in held.values())
        return max(used - claimed, 0)

    def _drop(self, tree: ProviderTree, name: str) -> None:
        """Remove the provider of a missing device; while it has allocations, reserve its inventory instead."""
        provider = tree.data(name)
        holders = self._report.get_allocations_for_resource_provider(provider.uuid)
        if not holders:
            tree.remove(name)
            return
        kept = {each: record | {"reserved": record["total"]} for each, record in provider.inventory.items()}
        if tree.update_inventory(name, kept):
            log.event("device_gone", provider=name, problem=f"{', '.join(sorted(holders))} holds it")


def _present(tree: ProviderTree, node: str) -> list[str]:
    """Return the names of the device providers in the tree of a node."""
    root = tree.data(node).uuid
    below = map(tree.data, tree.get_provider_uuids(root)[1:])
    return [each.name for each in below if each.parent_uuid == root and DEVICE_TRAIT in each.traits]


def _check_free(tree: ProviderTree, node: str, *, name: str, slot: Slot) -> None:
    """Refuse a foreign provider with the name of a device's provider; our own new provider may lack its traits."""
    if not tree.exists(name):
        return
    provider = tree.data(name)
    is_begun = not provider.traits and provider.inventory.keys() <= {slot.resource_class}
    if provider.parent_uuid != tree.data(node).uuid or not (is_begun or DEVICE_TRAIT in provider.traits):
        raise BadSettings(
            f"node {node}", f"device {slot.address} needs the provider {name}, which this agent does not manage"
        )


def _presence_problem(node: str, present: Sequence[str]) -> str:
    count = f"{len(present)} device{'s' if len(present) > 1 else ''}"
    return f"cannot be switched off: Placement counts {count} of node {node}; delete provider {present[0]} first"


def _count(slot: Slot, addresses: Iterable[str]) -> int:
    return sum(each in slot.devices for each in addresses)


def _claim_missing(held: Allocations, uuid: str, below: Mapping[str, Slot], *, holders: Holders, missing: int) -> int:
    """Claim a slot's devices for their guests, if these have allocations in the tree; return the unclaimed number.

    In return, the guests release unused devices of the same class.

    Args:
        held: allocations of the tree; edited in place.
        uuid: uuid of the slot's provider.
        below: slots of this and all other device providers, by uuid.
        holders: guests and their devices.
        missing: number of devices without an allocation.
    """
    slot = below[uuid]
    for consumer in sorted(holders):
        if consumer not in held:
            continue
        allocations, used = held[consumer]["allocations"], holders[consumer]
        lacking = min(_count(slot, used) - _amount(allocations, uuid, slot), missing)
        if lacking <= 0:
            continue
        _add(allocations, uuid, slot, amount=lacking)
        missing -= lacking
        log.event("devices_healed", consumer=consumer, device=slot.address, amount=lacking)
        for other, of in below.items():
            if of.resource_class == slot.resource_class:
                surplus = min(_amount(allocations, other, of) - _count(of, used), lacking)
                if surplus > 0:
                    _add(allocations, other, of, amount=-surplus)
                    lacking -= surplus
    return missing


def _amount(allocations: Mapping[str, Holding], uuid: str, slot: Slot) -> int:
    return allocations[uuid]["resources"].get(slot.resource_class, 0) if uuid in allocations else 0


def _add(allocations: dict[str, Holding], uuid: str, slot: Slot, *, amount: int) -> None:
    """Raise or lower an allocation of a consumer; delete it at 0."""
    held = allocations[uuid]["resources"] if uuid in allocations else {}
    held = {**held, slot.resource_class: held.get(slot.resource_class, 0) + amount}
    allocations[uuid] = Holding(resources={name: each for name, each in held.items() if each})


def _record(total: int, *, reserved: int) -> dict[str, float]:
    return {
        "total": total,
        "reserved": reserved,
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }
