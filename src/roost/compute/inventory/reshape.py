"""Writes a driver's provider tree to Placement; if inventories move, their allocations move too."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from roost.compute.driver import Driver
from roost.compute.inventory.device_providers import CountedDevices, DeviceProviders
from roost.compute.inventory.provider_config import COMPUTE_NODE_TRAIT, OWNER_TRAIT, ProviderConfigs
from roost.compute.providers.held_allocations import Allocations
from roost.compute.providers.provider_tree import ProviderTree
from roost.compute.report.placement_session import RetryPolicy
from roost.compute.report.report_client import ReportClient
from roost.errors import Conflict, ReshapeFailed, ReshapeNeeded, RoostError, SyncFailed
from roost.model.work.agent_terms import ReshapeTerms
from roost.observe import log

_DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"
_NO_DEVICES = CountedDevices()


class WrittenTree(NamedTuple):
    """The provider tree of a node in Placement."""

    tree: ProviderTree
    is_reshaped: bool  # whether inventories and their allocations moved


@dataclass(kw_only=True)
class _Node:
    """The update of a node, over all attempts."""

    name: str
    uuid: str
    is_startup: bool
    is_disabled: bool | None
    devices: CountedDevices = _NO_DEVICES
    known: frozenset[str] | None = None  # its providers before the first attempt
    added: set[str] = field(default_factory=set)  # providers that the driver added in any attempt
    is_reshaping: bool = False  # in the last attempt
    was_reshaping: bool = False  # in any attempt


class Reshaper:
    """Writes the provider trees of a driver's nodes to a Placement.

    Args:
        driver: of the host.
        report: the report client of the host.
        configs: additions of operators.
        terms: number of attempts, and the pauses between them.
        sleep: waits a number of seconds.
        uniform: returns a random number between two.
        devices: adds PCI devices; None: leave them unchanged.

    Source:
        nova/compute/resource_tracker.py, _update_to_placement.
    """

    def __init__(
        self,
        driver: Driver,
        report: ReportClient,
        *,
        configs: ProviderConfigs,
        terms: ReshapeTerms,
        sleep: Callable[[float], None],
        uniform: Callable[[float, float], float],
        devices: DeviceProviders | None = None,
    ) -> None:
        self._driver, self._report, self._configs, self._devices = driver, report, configs, devices
        self._tries = terms.reshape_tries
        self._retries = RetryPolicy(
            sleep=sleep, uniform=uniform, tries=terms.reshape_tries, step_s=terms.reshape_pause_s
        )

    def write(
        self,
        node: str,
        uuid: str,
        *,
        is_startup: bool,
        is_disabled: bool | None = None,
        devices: CountedDevices = _NO_DEVICES,
    ) -> WrittenTree:
        """Write the provider tree of a node; write nothing that is unchanged.

        After a concurrent change, repeat the write with a new tree and new allocations.

        Args:
            node: name of the node.
            uuid: uuid of its root provider, created if missing.
            is_startup: whether inventories may move.
            is_disabled: whether an operator has disabled the service; None: unchanged.
            devices: its PCI devices.

        Raises:
            ReshapeNeeded: inventories must move, and may not now; nothing was written.
            ReshapeFailed: inventories cannot move, or every attempt met a concurrent change. Placement is unchanged,
                unless the message states otherwise.
            Conflict: every attempt met a concurrent change, and inventories need not move any more.
            ValueError: the operators' additions conflict with the driver's inventories.
            BadSettings: its devices conflict with the settings.
            InUse, SyncFailed, PlacementGone: see ``ReportClient``.
        """
        found = _Node(name=node, uuid=uuid, is_startup=is_startup, is_disabled=is_disabled, devices=devices)
        tree = self._try(found, self._update_once)
        assert tree is not None
        return WrittenTree(tree, found.was_reshaping)

    def reshape(self, node: str, uuid: str) -> bool:
        """Write the tree of a node as at a start, but only if inventories must move; return whether they did.

        Raises:
            As for ``write``, except ReshapeNeeded.
        """
        found = _Node(name=node, uuid=uuid, is_startup=True, is_disabled=None)
        self._try(found, self._move_once)
        return found.was_reshaping

    def _try(self, node: _Node, act: Callable[[_Node], ProviderTree | None]) -> ProviderTree | None:
        conflict: Conflict | None = None
        for _ in self._retries.attempts():
            node.is_reshaping = False
            try:
                return act(node)
            except Conflict as error:
                conflict = error
                self._report.forget()
        assert conflict is not None, "there is at least one attempt"
        if not node.is_reshaping or not self._still_moves(node):
            raise conflict
        raise self._give_up(node, conflict) from conflict

    def _update_once(self, node: _Node) -> ProviderTree:
        """Attempt the whole update once."""
        tree, held = self._edit(node)
        self._flush(node, tree, held)
        return tree

    def _move_once(self, node: _Node) -> ProviderTree | None:
        """Attempt the update once if inventories must move."""
        tree, held = self._edit(node)
        if held is None:
            return None
        self._flush(node, tree, held)
        return tree

    def _edit(self, node: _Node) -> tuple[ProviderTree, Allocations | None]:
        """Return the driver's tree, and the allocations if inventories move."""
        tree = self._read_tree(node)
        if self._driver.capabilities.wants_allocations:
            return tree, self._edit_with_allocations(node, tree)
        try:
            self._driver.update_provider_tree(tree, node.name)
        except ReshapeNeeded as error:
            if not node.is_startup:
                raise
            self._begin(node, error.moved)
        else:
            return tree, None
        tree = self._read_tree(node)  # The driver may have edited the first tree before its error.
        held = self._report.get_allocations_for_provider_tree(node.uuid)
        self._driver.update_provider_tree(tree, node.name, held)
        return tree, held

    def _edit_with_allocations(self, node: _Node, tree: ProviderTree) -> Allocations | None:
        """Let the driver edit tree and allocations; return the allocations if allocations or inventories moved."""
        held = self._report.get_allocations_for_provider_tree(node.uuid)
        held_before, tree_before = copy.deepcopy(held), copy.deepcopy(tree)
        self._driver.update_provider_tree(tree, node.name, held)
        moved = _find_moving_classes(tree_before, tree)
        if held == held_before and not moved:
            return None
        names = ", ".join(sorted(moved)) or "allocations"
        if not node.is_startup:
            raise ReshapeNeeded(node.name, names)
        self._begin(node, names)
        return held

    def _begin(self, node: _Node, moved: str) -> None:
        node.is_reshaping = node.was_reshaping = True
        log.event("reshape_begun", node=node.name, classes=moved)

    def _read_tree(self, node: _Node) -> ProviderTree:
        tree = self._report.get_provider_tree_and_ensure_root(node.uuid, node.name)
        if node.known is None:
            node.known = frozenset(tree.get_provider_uuids())
        return tree

    def _flush(self, node: _Node, tree: ProviderTree, held: Allocations | None) -> None:
        traits = self._driver.capabilities.as_traits()
        tree.remove_traits(node.uuid, *(name for name, is_available in traits.items() if not is_available))
        tree.add_traits(node.uuid, COMPUTE_NODE_TRAIT, OWNER_TRAIT, *(name for name in traits if traits[name]))
        if node.is_disabled:
            tree.add_traits(node.uuid, _DISABLED_TRAIT)
        elif node.is_disabled is False:
            tree.remove_traits(node.uuid, _DISABLED_TRAIT)
        claimed = held
        if self._devices is not None:
            claimed = self._devices.update(tree, node.name, node.devices, held=held)
        self._configs.merge(tree)
        assert node.known is not None
        node.added.update(set(tree.get_provider_uuids()) - node.known)
        try:
            self._report.update_from_provider_tree(tree, claimed)
        except ReshapeFailed as error:
            if held is not None:
                raise
            self._report.forget()
            raise SyncFailed(str(error)) from error  # No inventory moves, so the next update may succeed.

    def _still_moves(self, node: _Node) -> bool:
        """Return whether inventories must still move; the last attempt may have moved them."""
        try:
            self._edit(replace(node, is_startup=False))
        except RoostError:  # ReshapeNeeded, or an error that hides it.
            return True
        return False

    def _give_up(self, node: _Node, conflict: Conflict) -> ReshapeFailed:
        """Delete the unused providers of failed attempts, and return the error."""
        problem = f"each of {self._tries} attempts met a concurrent change, the last time: {conflict}"
        try:
            tree = self._report.get_provider_tree_and_ensure_root(node.uuid, node.name)
            # Providers with inventories from a completed reshape stay.
            empty = [each for each in tree.get_provider_uuids(node.uuid) if not tree.has_inventory(each)]
            left = [
                name
                for each in reversed(empty)
                if each in node.added
                for name in self._report.delete_resource_provider(each)
            ]
        except RoostError as error:
            problem += f"; new providers may remain, since {error}"
        else:
            problem += f"; new providers in use remain: {', '.join(left)}" if left else ""
        return ReshapeFailed(node.name, problem)


def _find_moving_classes(before: ProviderTree, after: ProviderTree) -> set[str]:
    """Return the classes that left one provider and joined another."""
    old = {uuid: set(before.data(uuid).inventory) for uuid in before.get_provider_uuids()}
    new = {uuid: set(after.data(uuid).inventory) for uuid in after.get_provider_uuids()}
    left = {name for uuid, names in old.items() for name in names - new.get(uuid, set())}
    return left & {name for uuid, names in new.items() for name in names - old.get(uuid, set())}
