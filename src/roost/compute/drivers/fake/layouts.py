"""The providers of a fake node's resources in each layout, and moves to another layout with all allocations.

A node has *parts*: its physical GPUs, and its NUMA cells as ``numa<id>``. Their providers are children of the node,
named ``<node>_<part>``. The part with the empty name is the root.
"""

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import asdict

from roost.compute.drivers import pinned_cpus
from roost.compute.drivers.fake.guests import Uses
from roost.compute.drivers.fake.parts import SOFT, place, room_of
from roost.compute.drivers.fake.script import FakeNode, Layout, Script
from roost.compute.inventory.inventory_ratios import offer_of
from roost.compute.inventory.placement_devices import DEVICE_TRAIT, provider_name
from roost.compute.providers.held_allocations import Allocations
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import ReshapeFailed, ReshapeNeeded
from roost.model.work.agent_terms import HostTerms
from roost.observe import log

ROOT = ""
_VF = "SRIOV_NET_VF"
_Amounts = dict[str, int]  # by resource class


def parts_of(node: FakeNode) -> dict[str, _Amounts]:
    """Return the resources of each part of a node except the root, in any layout."""
    found = {gpu.name: {gpu.resource_class: gpu.vgpus} for gpu in node.gpu if gpu.vgpus}
    for cell in node.cell:
        functions = sum(each.dev_type == "type-VF" and each.numa_node == cell.id for each in node.pci)
        amounts = {"VCPU": len(cell.cpus), "PCPU": len(cell.pcpus), "MEMORY_MB": cell.memory_mb, _VF: functions}
        found[f"numa{cell.id}"] = {name: amount for name, amount in amounts.items() if amount}
    return found


def offers(node: FakeNode, layout: Layout) -> dict[str, _Amounts]:
    """Return the inventories of each part of a node in a layout, including the root.

    Amounts are totals in the unit of the class, >= 1.
    """
    moved = [gpu.name for gpu in node.gpu] if layout == "gpus" else []
    moved += [f"numa{cell.id}" for cell in node.cell] if layout == "numa" else []
    parts = parts_of(node)
    found = {part: amounts for part, amounts in parts.items() if part in moved}
    root = {"VCPU": node.vcpu_total, "MEMORY_MB": node.memory_total_mb, "DISK_GB": node.local_gb}
    root["PCPU"] = sum(len(cell.pcpus) for cell in node.cell)
    if layout == "shared":
        root["VCPU"] += sum(len({*cell.pcpus} - {*cell.cpus}) for cell in node.cell)
        root["PCPU"] = 0
    root[_VF] = sum(each.dev_type == "type-VF" for each in node.pci)
    for gpu in node.gpu:
        root[gpu.resource_class] = root.get(gpu.resource_class, 0) + gpu.vgpus
    for name in {name for amounts in found.values() for name in amounts}:
        del root[name]
    found[ROOT] = {name: amount for name, amount in root.items() if amount}
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """The move of a class away from a part."""

    to: tuple[str, ...]  # one or several new parts
    resource_class: str  # the class on the new parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """Writes one node into its provider tree.

    Args:
        script: contains the layout.
        node: the node, with its names on the host.
        guests: use of the parts by each guest, by uuid.
        promised: parts assigned to consumers without a guest yet, by uuid; extended here.
    """

    script: Script
    node: FakeNode
    terms: HostTerms
    guests: Mapping[str, Uses]
    promised: dict[str, Uses] = field(default_factory=dict)

    def update(self, tree: ProviderTree, allocations: Allocations | None) -> dict[str, str]:
        """Write the node into its tree: see ``Driver.update_provider_tree``.

        Returns:
            The part of each of its providers, by uuid.
        """
        present = self._present(tree)
        new = self._count_inventories(tree, present)
        there = {part: {*tree.data(uuid).inventory} for part, uuid in present.items()}
        was_offered, is_offered = (any(pinned_cpus.PCPU in each for each in parts.values()) for parts in (there, new))
        processors = self._processors()
        is_pinning = pinned_cpus.is_due(there[ROOT], processors, was_offered=was_offered, is_offered=is_offered)
        if is_pinning:
            there[ROOT].add(pinned_cpus.PCPU)  # Temporarily: PCPU may move on to the cells.
        moves = self._find_moves(there, new)
        if moves or is_pinning:
            names = ", ".join(sorted({name for _, name in moves} | ({pinned_cpus.VCPU} if is_pinning else set())))
            if allocations is None:
                raise ReshapeNeeded(self.node.name, names)
            log.event("reshape", node=self.node.name, classes=names)
        children = {part: f"{self.node.name}_{part}" for part in new if part != ROOT}
        # All checks precede the first change.
        held, root = allocations or {}, present[ROOT]
        own = pinned_cpus.to_move(held, root, processors) if is_pinning else {}
        after = copy.deepcopy(held)
        pinned_cpus.move(after, root, own)
        targets = {} if allocations is None else self._find_targets(after, present, moves)
        for part, name in children.items():
            if part not in present:
                present[part] = tree.new_child(name, self.node.name)
        pinned_cpus.move(held, root, own)
        self._move(held, present, targets)
        for part, uuid in present.items():
            if part in new:
                tree.update_inventory(uuid, new[part])
        tree.update_resources(root, self.node.pieces)
        traits = {ROOT: self.node.traits} | {gpu.name: gpu.traits for gpu in self.node.gpu}
        for part in new:
            tree.add_traits(present[part], *traits.get(part, ()))
        for part in [part for part in present if part not in new]:
            tree.remove(present.pop(part))
        self._add_children(tree)
        return {uuid: part for part, uuid in present.items()}

    def _present(self, tree: ProviderTree) -> dict[str, str]:
        """Return the uuids of the node's own providers, by part."""
        root, prefix = tree.data(self.node.name), f"{self.node.name}_"
        further = {each.name for each in self.node.provider}
        # The new provider of a device may still lack its trait.
        further |= {
            provider_name(root.name, name) for each in self.node.pci for name in (each.address, each.parent_address)
        }
        found = {ROOT: root.uuid}
        for uuid in tree.get_provider_uuids(root.uuid)[1:]:
            child = tree.data(uuid)
            is_own = child.name not in further and DEVICE_TRAIT not in child.traits
            if child.parent_uuid == root.uuid and child.name.startswith(prefix) and is_own:
                found[child.name.removeprefix(prefix)] = uuid
        return found

    def _count_inventories(
        self, tree: ProviderTree, present: Mapping[str, str]
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Return the inventories of all parts, by resource class."""
        known = {part: tree.data(uuid).inventory for part, uuid in present.items()}
        reserved: dict[str, int] = {}  # reserved amounts of the host so far
        new: dict[str, dict[str, dict[str, float]]] = {}
        for part, totals in offers(self.node, self.script.layout).items():
            new[part] = {}
            there = [known[each] for each in (part, *known) if each in known]
            for name, total in totals.items():
                record = offer_of(self.terms, name, total, present=there, reserved=reserved.get(name, 0))
                reserved[name] = reserved.get(name, 0) + int(record["reserved"])
                new[part][name] = record
        for name, pieces in self.node.pieces.items():
            if pieces:
                there = [known[ROOT]] if ROOT in known else []
                new[ROOT][name] = offer_of(self.terms, name, len(pieces), present=there)
        renames = self.script.renames if self.script.layout == "renamed" else {}
        for name, inventory in self.node.inventories.items():
            new[ROOT][renames.get(name, name)] = asdict(inventory)
        return new

    def _processors(self) -> dict[str, pinned_cpus.Processors]:
        """Return the processors of each guest."""
        sums = {uuid: _sums(uses, {pinned_cpus.VCPU: 0, pinned_cpus.PCPU: 0}) for uuid, uses in self.guests.items()}
        return {
            uuid: pinned_cpus.Processors(each[pinned_cpus.VCPU], each[pinned_cpus.PCPU]) for uuid, each in sums.items()
        }

    def _find_moves(
        self, there: Mapping[str, Iterable[str]], new: Mapping[str, Collection[str]]
    ) -> dict[tuple[str, str], _Move]:
        """Return the moves of classes, by old part and class; classes without a new part are left out.

        Args:
            there, new: classes by part, before and after.
        """
        names = self.script.renames | {new: old for old, new in self.script.renames.items()}
        moves = {}
        for part, names_there in there.items():
            for name in names_there:
                if name in new.get(part, ()):
                    continue
                renamed = names.get(name)
                if renamed is not None and renamed in new.get(part, ()):
                    moves[part, name] = _Move(to=(part,), resource_class=renamed)
                elif part != ROOT and name in new[ROOT]:
                    moves[part, name] = _Move(to=(ROOT,), resource_class=name)
                elif part == ROOT and any(name in offered for offered in new.values()):
                    to = tuple(each for each, offered in new.items() if name in offered)
                    moves[part, name] = _Move(to=to, resource_class=name)
                elif name == pinned_cpus.PCPU and pinned_cpus.VCPU in new[ROOT]:
                    moves[part, name] = _Move(to=(ROOT,), resource_class=pinned_cpus.VCPU)
        return moves

    def _find_targets(
        self, allocations: Allocations, present: Mapping[str, str], moves: Mapping[tuple[str, str], _Move]
    ) -> dict[tuple[str, str, str], Uses]:
        """Return the new parts and amounts of moving allocations, by consumer, old part and old class.

        Raises:
            ReshapeFailed: the allocations contradict the guests' use.
        """
        part_of = {uuid: part for part, uuid in present.items()}
        for gone in [each for each in self.promised if each not in allocations]:
            del self.promised[gone]
        # Allocations of these classes follow their guests; all others have a single target.
        down = {name for (part, name), move in moves.items() if part == ROOT and move.to != (ROOT,)}
        targets: dict[tuple[str, str, str], Uses] = {}
        waiting: dict[str, _Amounts] = {}  # consumers without a guest here, and their allocations on the root
        holders = set()
        for consumer, held in allocations.items():
            for uuid, record in held["allocations"].items():
                part = part_of.get(uuid)
                if part is None:
                    continue
                holders.add(consumer)
                for name, amount in record["resources"].items():
                    if part != ROOT and name in down:
                        raise self._failure(f"{consumer} holds {name} of {self.node.name}_{part}, not of the root")
                    if (part, name) not in moves:
                        continue
                    move = moves[part, name]
                    if name not in down:
                        targets[consumer, part, name] = {move.to[0]: {move.resource_class: amount}}
                    elif consumer in self.guests:
                        targets[consumer, part, name] = self._placement_of(consumer, move, amount)
                    else:
                        waiting.setdefault(consumer, {})[name] = amount
        self._find_parts(waiting, [uses for uuid, uses in self.guests.items() if uuid not in holders], targets)
        return targets

    def _placement_of(self, consumer: str, move: _Move, amount: int) -> Uses:
        """Return the use of a class by a guest, as its new allocations."""
        uses, resource_class = self.guests[consumer], move.resource_class
        found = {
            part: {resource_class: uses[part][resource_class]}
            for part in move.to
            if uses.get(part, {}).get(resource_class)
        }
        if not found:
            raise self._failure(f"{consumer} holds {amount} {resource_class} and uses none on the new providers")
        counted = sum(each[resource_class] for each in found.values())
        if counted != amount:
            log.event("uses_differ", consumer=consumer, resource_class=resource_class, held=amount, used=counted)
        return found

    def _find_parts(
        self, waiting: Mapping[str, _Amounts], leaving: list[Uses], targets: dict[tuple[str, str, str], Uses]
    ) -> None:
        """Find the parts of consumers without a guest.

        The consumer of a migration took over the allocations of a departing guest, so it gets the parts of this guest.
        A consumer without a guest yet gets free parts.
        """
        earlier = [uses for uuid, uses in self.promised.items() if uuid not in waiting]
        room = room_of(parts_of(self.node), [*self.guests.values(), *earlier])
        for consumer, amounts in waiting.items():
            uses = next((each for each in leaving if _sums(each, amounts) == amounts), None)
            if uses is not None:
                leaving.remove(uses)
            else:
                uses = place(amounts, room)
                if uses is None:
                    hard_amounts = ", ".join(f"{amount} {name}" for name, amount in amounts.items() if name not in SOFT)
                    raise self._failure(f"{consumer} holds {hard_amounts} and has no guest, and too few are free")
                self.promised[consumer] = uses
            for name in amounts:
                targets[consumer, ROOT, name] = {
                    part: {name: used[name]} for part, used in uses.items() if name in used
                }

    def _move(
        self, allocations: Allocations, present: Mapping[str, str], targets: Mapping[tuple[str, str, str], Uses]
    ) -> None:
        """Move allocations to their new parts, in place."""
        for (consumer, part, name), uses in targets.items():
            held = allocations[consumer]["allocations"]
            del held[present[part]]["resources"][name]
            for target, amounts in uses.items():
                resources = held.setdefault(present[target], {"resources": {}})["resources"]
                for new_name, amount in amounts.items():
                    resources[new_name] = resources.get(new_name, 0) + amount
            if not held[present[part]]["resources"]:
                del held[present[part]]

    def _add_children(self, tree: ProviderTree) -> None:
        for child in self.node.provider:
            if not tree.exists(child.name):
                tree.new_child(child.name, child.parent or self.node.name)
            inventories = {name: asdict(inventory) for name, inventory in child.inventories.items()}
            tree.update_inventory(child.name, inventories)
            tree.add_traits(child.name, *child.traits)

    def _failure(self, problem: str) -> ReshapeFailed:
        return ReshapeFailed(self.node.name, problem)


def _sums(uses: Uses, names: Mapping[str, int]) -> _Amounts:
    """Return the total use of some classes, on all parts."""
    return {name: sum(each.get(name, 0) for each in uses.values()) for name in names}
