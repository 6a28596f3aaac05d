"""The provider tree of a host: a driver edits it, and the report client writes it to Placement."""

import threading
import uuid as uuids
from collections.abc import Callable, Hashable, Iterable, Mapping

from msgspec.structs import replace

from roost.compute.providers import provider_forest
from roost.compute.providers.provider_forest import Forest, Inventories, ProviderData, ProviderRecord
from roost.errors import quote_value
from roost.model.names import SHARING_TRAIT

# One lock for all trees, since a lock cannot be copied with its tree. No code of drivers runs while it is held.
TREES_LOCK = threading.Lock()


def _random_uuid() -> str:
    return str(uuids.uuid4())


class ProviderTree:
    """A set of provider trees with their inventories. Threads may share the set; ``copy.deepcopy`` copies it.

    Methods take a uuid or a name, and raise ValueError for an unknown provider, except ``exists``. They return copies;
    edits of a copy do not change the tree. An error leaves the tree unchanged.

    Args:
        new_uuid: returns a uuid for a child created without one.
    """

    def __init__(self, *, new_uuid: Callable[[], str] = _random_uuid) -> None:
        self._forest = Forest()
        self._new_uuid = new_uuid

    def __deepcopy__(self, memo: dict[int, object]) -> "ProviderTree":
        twin = ProviderTree(new_uuid=self._new_uuid)
        with TREES_LOCK:
            twin._forest = self._forest.copy()
        return twin

    # --- providers ---

    @property
    def roots(self) -> list[ProviderData]:
        """All roots, in the order in which they were added."""
        with TREES_LOCK:
            return [_snapshot(self._forest.providers[root]) for root in self._forest.roots()]

    def get_provider_uuids(self, name_or_uuid: str | None = None) -> list[str]:
        """Return the uuids of a provider's subtree, or of all trees, each after its parent."""
        with TREES_LOCK:
            starts = self._forest.roots() if name_or_uuid is None else [self._forest.find(name_or_uuid).uuid]
            return [uuid for start in starts for uuid in self._forest.below(start)]

    def get_provider_uuids_in_tree(self, name_or_uuid: str) -> list[str]:
        """Return the uuids of a provider's whole tree, each after its parent."""
        with TREES_LOCK:
            return self._forest.below(self._forest.root_of(self._forest.find(name_or_uuid)))

    def exists(self, name_or_uuid: str) -> bool:
        """Return whether there is such a provider."""
        with TREES_LOCK:
            return self._forest.has(name_or_uuid)

    def data(self, name_or_uuid: str) -> ProviderData:
        """Return a copy of all data of a provider."""
        with TREES_LOCK:
            return _snapshot(self._forest.find(name_or_uuid))

    def populate_from_iterable(self, provider_dicts: Iterable[ProviderRecord]) -> None:
        """Add the providers of records; each replaces an existing provider of the same uuid, and others stay.

        A replaced provider loses its inventories, traits, aggregates and pieces. Its old descendants are removed,
        unless they have records of their own.

        Raises:
            ValueError: a record lacks a field, a parent is unknown, or a provider is its own ancestor.
        """
        providers = provider_forest.read(provider_dicts)
        with TREES_LOCK:
            self._forest.populate(providers)

    def new_root(self, name: str, uuid: str, generation: int | None = None) -> str:
        """Add a provider without a parent, and return its uuid.

        Raises:
            ValueError: the uuid exists.
        """
        with TREES_LOCK:
            return self._add(ProviderData(uuid=uuid, name=name, generation=generation))

    def new_child(  # noqa: PLR0917  # Third-party drivers call it like Nova's.
        self, name: str, parent: str, uuid: str | None = None, generation: int | None = None
    ) -> str:
        """Add a child provider, with a new uuid if none is given; return the uuid.

        Args:
            parent: name or uuid.

        Raises:
            ValueError: the uuid exists, the name exists and no uuid is given, or the parent is unknown.
        """
        fresh = self._new_uuid() if uuid is None else uuid
        with TREES_LOCK:
            if uuid is None and self._forest.has(name):
                raise ValueError(f"provider {quote_value(name)} exists already")
            parent_uuid = self._forest.find(parent).uuid
            return self._add(ProviderData(uuid=fresh, name=name, generation=generation, parent_uuid=parent_uuid))

    def remove(self, name_or_uuid: str) -> None:
        """Remove a provider and its subtree."""
        with TREES_LOCK:
            self._forest.drop(self._forest.find(name_or_uuid).uuid)

    # --- inventories ---

    def has_inventory(self, name_or_uuid: str) -> bool:
        """Return whether a provider has any inventory."""
        return bool(self._find(name_or_uuid).inventory)

    def has_inventory_changed(self, name_or_uuid: str, inventory: Mapping[str, Mapping[str, float]]) -> bool:
        """Return whether inventories differ from those of a provider; an omitted field counts as equal."""
        return provider_forest.has_changed(self._find(name_or_uuid).inventory, _inventories(inventory))

    def update_inventory(
        self, name_or_uuid: str, inventory: Mapping[str, Mapping[str, float]], generation: int | None = None
    ) -> bool:
        """Replace all inventories of a provider if they differ; return whether they did.

        Args:
            inventory: records of the Placement API by resource class.
            generation: generation of the provider, set even if the inventories are equal; None: unchanged.
        """
        replacement = _inventories(inventory)
        with TREES_LOCK:
            old = self._forest.find(name_or_uuid)
            has_changed = provider_forest.has_changed(old.inventory, replacement)
            new = replace(old, inventory=replacement) if has_changed else old
            self._put(new, generation)
            return has_changed

    def has_sharing_provider(self, resource_class: str) -> bool:
        """Return whether a provider shares an inventory of a resource class with its aggregates."""
        with TREES_LOCK:
            return any(
                resource_class in each.inventory and SHARING_TRAIT in each.traits
                for each in self._forest.providers.values()
            )

    def update_resources(self, name_or_uuid: str, resources: Mapping[str, Iterable[Hashable]]) -> bool:
        """Replace the pieces (single resources) of a provider, by resource class; return whether they differed."""
        replacement = {resource_class: frozenset(pieces) for resource_class, pieces in resources.items()}
        with TREES_LOCK:
            old = self._forest.find(name_or_uuid)
            self._put(replace(old, resources=replacement), None)
            return old.resources != replacement

    # --- traits ---

    def has_traits(self, name_or_uuid: str, traits: Iterable[str]) -> bool:
        """Return whether a provider has all these traits."""
        return _names("traits", traits) <= self._find(name_or_uuid).traits

    def have_traits_changed(self, name_or_uuid: str, traits: Iterable[str]) -> bool:
        """Return whether the traits of a provider differ from these."""
        return _names("traits", traits) != self._find(name_or_uuid).traits

    def update_traits(self, name_or_uuid: str, traits: Iterable[str], generation: int | None = None) -> bool:
        """Replace all traits of a provider; return whether they differed. Set a given generation in any case."""
        replacement = _names("traits", traits)
        with TREES_LOCK:
            old = self._forest.find(name_or_uuid)
            self._put(replace(old, traits=replacement), generation)
            return old.traits != replacement

    def add_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Add traits to those of a provider."""
        with TREES_LOCK:
            old = self._forest.find(name_or_uuid)
            self._put(replace(old, traits=old.traits.union(traits)), None)

    def remove_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Remove traits from a provider; ignore those that it lacks."""
        with TREES_LOCK:
            old = self._forest.find(name_or_uuid)
            self._put(replace(old, traits=old.traits.difference(traits)), None)

    # --- aggregates ---

    def in_aggregates(self, name_or_uuid: str, aggregates: Iterable[str]) -> bool:
        """Return whether a provider is in all these aggregates."""
        return _names("aggregates", aggregates) <= self._find(name_or_uuid).aggregates

    def have_aggregates_changed(self, name_or_uuid: str, aggregates: Iterable[str]) -> bool:
        """Return whether the aggregates of a provider differ from these."""
        return _names("aggregates", aggregates) != self._find(name_or_uuid).aggregates

    def update_aggregates(self, name_or_uuid: str, aggregates: Iterable[str], generation: int | None = None) -> bool:
        """Replace all aggregates of a provider; return whether they differed. Set a given generation in any case."""
        replacement = _names("aggregates", aggregates)
        with TREES_LOCK:
            old = self._forest.find(name_or_uuid)
            self._put(replace(old, aggregates=replacement), generation)
            return old.aggregates != replacement

    def add_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Add a provider to aggregates."""
        with TREES_LOCK:
            old = self._forest.find(name_or_uuid)
            self._put(replace(old, aggregates=old.aggregates.union(aggregates)), None)

    def remove_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Remove a provider from aggregates; ignore those that it is not in."""
        with TREES_LOCK:
            old = self._forest.find(name_or_uuid)
            self._put(replace(old, aggregates=old.aggregates.difference(aggregates)), None)

    # --- shared ---

    def _find(self, name_or_uuid: str) -> ProviderData:
        with TREES_LOCK:
            return self._forest.find(name_or_uuid)

    def _add(self, provider: ProviderData) -> str:
        if provider.uuid in self._forest.providers:
            raise ValueError(f"provider {quote_value(provider.uuid)} exists already")
        self._forest.add(provider)
        return provider.uuid

    def _put(self, provider: ProviderData, generation: int | None) -> None:
        self._forest.put(provider if generation is None else replace(provider, generation=generation))


def _snapshot(provider: ProviderData) -> ProviderData:
    """Return a copy for the caller to edit."""
    inventory = {resource_class: {**record} for resource_class, record in provider.inventory.items()}
    return replace(provider, inventory=inventory, resources={**provider.resources})


def _inventories(inventory: Mapping[str, Mapping[str, float]]) -> Inventories:
    """Return an independent copy of inventories in the stored form."""
    for resource_class, record in inventory.items():
        if not isinstance(record, Mapping):
            raise ValueError(f"the inventory of {resource_class} must be a record of fields, got {quote_value(record)}")  # noqa: TRY004  # every error is a ValueError
    return {resource_class: {**record} for resource_class, record in inventory.items()}


def _names(what: str, names: Iterable[str]) -> frozenset[str]:
    """Return names as a set; refuse a single text, since it would become a set of letters."""
    if isinstance(names, str):
        raise ValueError(f"{what} must be a collection of names, got the text {quote_value(names)}")  # noqa: TRY004  # every error is a ValueError
    return frozenset(names)
