"""The providers as the report client last read them, and their edited copies."""

import copy
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

from roost.compute.providers.provider_tree import ProviderTree
from roost.model.names import SHARING_TRAIT


class Cache:
    """The provider trees of Placement.

    Args:
        elapsed_s: returns the seconds of a monotonic clock.
        refresh_s: age in seconds at which the data of a provider is stale; 0: never.
    """

    def __init__(self, *, elapsed_s: Callable[[], float], refresh_s: float) -> None:
        self.tree = ProviderTree()
        self._elapsed_s = elapsed_s
        self._refresh_s = refresh_s
        self._read_at_s: dict[str, float] = {}
        self._copies: WeakKeyDictionary[ProviderTree, frozenset[str]] = WeakKeyDictionary()

    def copy_tree(self) -> ProviderTree:
        """Return a copy to edit, and record its providers, so that ``find_removed`` finds removals by its editor."""
        twin = copy.deepcopy(self.tree)
        self._copies[twin] = frozenset(twin.get_provider_uuids())
        return twin

    def note_flushed(self, edited: ProviderTree) -> None:
        """Record the providers of an edited tree, so that ``find_removed`` finds later removals by its editor."""
        self._copies[edited] = self._copies.get(edited, frozenset()) | frozenset(edited.get_provider_uuids())

    def find_removed(self, edited: ProviderTree) -> list[str]:
        """Return the known providers that an edited tree lacks, each after its parent.

        For a copy from ``copy_tree``, ignore providers read after the copy. For another tree, consider only
        the cached trees of its roots. Sharing providers are never removed.
        """
        left = set(edited.get_provider_uuids())
        known = self.tree.get_provider_uuids()
        copied = self._copies.get(edited)
        if copied is None:
            roots = [root.uuid for root in edited.roots if self.tree.exists(root.uuid)]
            copied = frozenset(each for root in roots for each in self.tree.get_provider_uuids_in_tree(root))
        return [uuid for uuid in known if uuid in copied and uuid not in left and not self.is_shared(uuid)]

    def is_shared(self, uuid: str) -> bool:
        """Return whether a provider is a root that shares its inventories."""
        if not self.tree.exists(uuid):
            return False
        known = self.tree.data(uuid)
        return known.parent_uuid is None and SHARING_TRAIT in known.traits

    def is_stale(self, uuid: str) -> bool:
        """Return whether the data of a provider was never read, or is too old."""
        read_at_s = self._read_at_s.get(uuid)
        if read_at_s is None:
            return True
        return self._refresh_s > 0 and self._elapsed_s() - read_at_s > self._refresh_s

    def note_read(self, uuid: str) -> None:
        """Record that all data of a provider was read now."""
        self._read_at_s[uuid] = self._elapsed_s()

    def forget(self, uuid: str) -> None:
        """Drop a provider and its subtree from the cache."""
        if self.tree.exists(uuid):
            for each in self.tree.get_provider_uuids(uuid):
                self._read_at_s.pop(each, None)
            self.tree.remove(uuid)

    def forget_trees(self, uuids: Iterable[str]) -> None:
        """Drop the whole trees of some providers, so that they are read again."""
        for uuid in uuids:
            if self.tree.exists(uuid):
                self.forget(self.tree.get_provider_uuids_in_tree(uuid)[0])
