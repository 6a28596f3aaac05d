"""The providers of a libvirt host: all inventories are on the root, except vGPUs, which are on a child per GPU."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from roost.compute.drivers import pinned_cpus
from roost.compute.drivers.libvirt.devices import VGPU
from roost.compute.drivers.libvirt.domain_xml import count_dedicated
from roost.compute.drivers.libvirt.host import list_cpu_traits
from roost.compute.drivers.libvirt.link import Guest
from roost.compute.inventory.inventory_ratios import offer_of
from roost.compute.providers.held_allocations import Allocations, Holding
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import ReshapeFailed, ReshapeNeeded
from roost.model.work.agent_terms import HostTerms
from roost.model.work.guest import GuestSpec
from roost.observe import log


class GuestShare(msgspec.Struct, frozen=True, kw_only=True):
    """The vGPUs and processors of a guest."""

    gpus: dict[str, int] = {}  # vGPUs of each GPU, by name
    processors: pinned_cpus.Processors = pinned_cpus.Processors(0, 0)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of a host for instances."""

    totals: dict[str, int]  # by resource class, in its unit; 0: none
    gpus: dict[str, int]  # vGPUs of each GPU, by name
    traits: frozenset[str]  # of its processors


def use_of_guest(guest: Guest, dedicated: frozenset[int]) -> GuestShare:
    """Return the use of a guest on a host with some dedicated processors."""
    count = count_dedicated(guest.xml, dedicated)
    gpus = Counter(vgpu.gpu for vgpu in guest.mark.vgpus)
    return GuestShare(gpus=gpus, processors=pinned_cpus.Processors(max(guest.mark.vcpus - count, 0), count))


def use_of_spec(spec: GuestSpec) -> GuestShare:
    """Return the processors of an expected guest."""
    count = sum(len(each.pins.pairs) + len(each.pins.reserved) for each in spec.cells)
    return GuestShare(processors=pinned_cpus.Processors(max(spec.flavor.vcpus - count, 0), count))


def update(
    tree: ProviderTree,
    node: str,
    offer: Offer,
    *,
    terms: HostTerms,
    allocations: Allocations | None,
    guests: Mapping[str, GuestShare],
) -> dict[str, str]:
    """Write a host's inventories into its tree; move vGPUs of the root to the GPUs, and dedicated VCPU to PCPU.

    Args:
        tree, node, allocations: see ``Driver.update_provider_tree``.
        offer: resources of the host.
        terms: overcommit and reserves of the host.
        guests: use of each guest, by uuid.

    Returns:
        The GPU of each GPU provider, by uuid.

    Raises:
        ReshapeNeeded: ``allocations`` is None, and either the root has vGPUs, or it offers PCPU for the first time
            while guests use it.
        ReshapeFailed: the allocations contradict the guests' use.
    """
    root = tree.data(node)
    present = _gpus_in(tree, node)
    is_dividing = VGPU in root.inventory and bool(offer.gpus)
    processors = {uuid: each.processors for uuid, each in guests.items()}
    is_pinning = pinned_cpus.is_due(
        root.inventory,
        processors,
        was_offered=pinned_cpus.PCPU in root.inventory,
        is_offered=bool(offer.totals.get(pinned_cpus.PCPU)),
    )
    if allocations is None and (is_dividing or is_pinning):
        raise ReshapeNeeded(node, ", ".join([VGPU] * is_dividing + [pinned_cpus.VCPU] * is_pinning))
    held = allocations or {}
    targets = _targets(tree, node, offer, allocations=held, guests=guests) if is_dividing else {}
    if is_pinning:
        pinned_cpus.move(held, root.uuid, pinned_cpus.to_move(held, root.uuid, processors))
    for gpu, total in offer.gpus.items():
        if gpu not in present:
            present[gpu] = tree.new_child(f"{node}_{gpu}", node)
        there = [tree.data(present[gpu]).inventory, root.inventory]
        tree.update_inventory(present[gpu], {VGPU: offer_of(terms, VGPU, total, present=there)})
    for gone in [gpu for gpu in present if gpu not in offer.gpus]:
        tree.remove(present.pop(gone))
    _move(held, targets, root=root.uuid, present=present)
    inventories = {
        name: offer_of(terms, name, total, present=[root.inventory]) for name, total in offer.totals.items() if total
    }
    tree.update_inventory(node, inventories)
    tree.remove_traits(node, *(list_cpu_traits() - offer.traits))
    tree.add_traits(node, *offer.traits)
    return {uuid: gpu for gpu, uuid in present.items()}


def _gpus_in(tree: ProviderTree, node: str) -> dict[str, str]:
    """Return the providers of GPUs, by name of the GPU."""
    root, prefix = tree.data(node).uuid, f"{node}_"
    found = {}
    for child in map(tree.data, tree.get_provider_uuids(root)[1:]):
        if child.parent_uuid == root and child.name.startswith(f"{prefix}pci_"):
            found[child.name.removeprefix(prefix)] = child.uuid
    return found


def _targets(
    tree: ProviderTree, node: str, offer: Offer, *, allocations: Allocations, guests: Mapping[str, GuestShare]
) -> dict[str, Mapping[str, int]]:
    """Return the vGPUs on each GPU for each consumer with vGPUs on the root."""
    root, *below = tree.get_provider_uuids(node)
    targets: dict[str, Mapping[str, int]] = {}
    for consumer, record in allocations.items():
        held = record["allocations"]
        amounts = {uuid: held[uuid]["resources"].get(VGPU, 0) for uuid in (root, *below) if uuid in held}
        if other := next((uuid for uuid in below if amounts.get(uuid)), None):
            raise ReshapeFailed(node, f"{consumer} holds {VGPU} of {tree.data(other).name}, not of the root")
        amount = amounts.get(root, 0)
        if not amount:
            continue
        used = {gpu: count for gpu, count in guests.get(consumer, GuestShare()).gpus.items() if count}
        if not used:
            raise ReshapeFailed(node, f"{consumer} holds {amount} {VGPU} and uses none")
        if missing := sorted({*used} - {*offer.gpus}):
            raise ReshapeFailed(node, f"{consumer} uses {VGPU} of {missing[0]}, which is not offered")
        if sum(used.values()) != amount:
            counted = sum(used.values())
            log.event("uses_differ", consumer=consumer, resource_class=VGPU, held=amount, used=counted)
        targets[consumer] = used
    return targets


def _move(
    allocations: Allocations, targets: Mapping[str, Mapping[str, int]], *, root: str, present: Mapping[str, str]
) -> None:
    """Move allocations of vGPUs from the root to the GPUs, in place."""
    for consumer, used in targets.items():
        held = allocations[consumer]["allocations"]
        del held[root]["resources"][VGPU]
        if not held[root]["resources"]:
            del held[root]
        for gpu, count in used.items():
            held.setdefault(present[gpu], Holding(resources={}))["resources"][VGPU] = count
