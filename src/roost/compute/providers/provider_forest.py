"""Provider trees by uuid and by name, without locks and I/O; ``provider_tree`` guards them."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypedDict

import msgspec

from roost.errors import quote_value

Inventories = dict[str, dict[str, float]]  # by resource class; a record has the names and units of the Placement API


class ProviderRecord(TypedDict):
    """A provider in the Placement API's list, since version 1.14."""

    uuid: str
    name: str
    generation: int | None
    parent_provider_uuid: str | None


class ProviderData(msgspec.Struct, frozen=True, kw_only=True):
    """The known data of one provider at one moment."""

    uuid: str
    name: str
    generation: int | None = None  # None: unknown
    parent_uuid: str | None = None  # None: it is a root
    inventory: Inventories = {}
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()  # uuids
    resources: dict[str, frozenset[Hashable]] = {}  # by resource class: the individual pieces


class Forest:
    """Provider trees in the order of their addition."""

    def __init__(self) -> None:
        self.providers: dict[str, ProviderData] = {}  # by uuid
        # The keys serve as ordered sets. The parent of a root is None.
        self._children: dict[str | None, dict[str, None]] = {}
        self._named: dict[str, dict[str, None]] = {}

    def copy(self) -> "Forest":
        """Return an independent forest; the providers are values and stay shared."""
        twin = Forest()
        twin.providers = dict(self.providers)
        twin._children = {parent: dict(children) for parent, children in self._children.items()}
        twin._named = {name: dict(uuids) for name, uuids in self._named.items()}
        return twin

    def has(self, name_or_uuid: str) -> bool:
        """Return whether a provider has this uuid or this name."""
        return name_or_uuid in self.providers or name_or_uuid in self._named

    def find(self, name_or_uuid: str) -> ProviderData:
        """Return the provider with this uuid, else the one with this name.

        Raises:
            ValueError: there is none, or several have the name.
        """
        if name_or_uuid in self.providers:
            return self.providers[name_or_uuid]
        uuids = [*self._named.get(name_or_uuid, ())]
        if not uuids:
            raise ValueError(f"there is no provider {quote_value(name_or_uuid)} in the tree")
        if len(uuids) > 1:
            raise ValueError(f"several providers are named {quote_value(name_or_uuid)}, say which: {', '.join(uuids)}")
        return self.providers[uuids[0]]

    def roots(self) -> list[str]:
        """Return the uuids of all roots."""
        return [*self._children.get(None, ())]

    def below(self, uuid: str) -> list[str]:
        """Return the uuids of a provider's subtree, each after its parent."""
        found, waiting = [], [uuid]
        while waiting:
            found.append(waiting.pop())
            waiting += reversed(self._children.get(found[-1], {}))
        return found

    def root_of(self, provider: ProviderData) -> str:
        """Return the uuid of a provider's root."""
        while provider.parent_uuid is not None:
            provider = self.providers[provider.parent_uuid]
        return provider.uuid

    def add(self, provider: ProviderData) -> None:
        """Add a provider as the last of its siblings. Its uuid must be new; its parent may be added later."""
        assert provider.uuid not in self.providers, provider.uuid
        self.providers[provider.uuid] = provider
        self._children.setdefault(provider.parent_uuid, {})[provider.uuid] = None
        self._named.setdefault(provider.name, {})[provider.uuid] = None

    def put(self, provider: ProviderData) -> None:
        """Replace the data of a provider; name and parent must stay the same."""
        self.providers[provider.uuid] = provider

    def drop(self, uuid: str) -> None:
        """Drop a provider and its subtree."""
        del self._children[self.providers[uuid].parent_uuid][uuid]
        for each in self.below(uuid):
            provider = self.providers.pop(each)
            self._children.pop(each, None)
            del self._named[provider.name][each]
            if not self._named[provider.name]:
                del self._named[provider.name]

    def populate(self, providers: Mapping[str, ProviderData]) -> None:
        """Add providers; each replaces an existing provider of the same uuid, with its subtree.

        Args:
            providers: by uuid, parents and children in any order.

        Raises:
            ValueError: a parent is unknown, or a provider is its own ancestor; nothing was changed.
        """
        replaced = [uuid for uuid in providers if uuid in self.providers]
        dropped = {each for uuid in replaced for each in self.below(uuid)}
        _check_parents(providers, self.providers.keys() - dropped)
        for uuid in replaced:
            if uuid in self.providers:  # The subtree of another replaced provider is gone already.
                self.drop(uuid)
        for provider in providers.values():
            self.add(provider)


def read(records: Iterable[ProviderRecord]) -> dict[str, ProviderData]:
    """Return the providers of records, by uuid; of several records of one uuid the last counts.

    Raises:
        ValueError: a record lacks a field.
    """
    found = {}
    for record in records:
        missing = [key for key in sorted(ProviderRecord.__required_keys__) if key not in record]
        if missing:
            raise ValueError(f"the record of a provider lacks {', '.join(missing)}: {quote_value(record)}")
        found[record["uuid"]] = ProviderData(
            uuid=record["uuid"],
            name=record["name"],
            generation=record["generation"],
            parent_uuid=record["parent_provider_uuid"],
        )
    return found


def has_changed(old: Mapping[str, Mapping[str, float]], new: Mapping[str, Mapping[str, float]]) -> bool:
    """Return whether inventories differ; an omitted field is unchanged, since Placement fills it in."""
    return old.keys() != new.keys() or any(
        key not in old[resource_class] or old[resource_class][key] != value
        for resource_class, record in new.items()
        for key, value in record.items()
    )


def _check_parents(providers: Mapping[str, ProviderData], remaining: set[str]) -> None:
    """Raise ValueError unless each new provider has a root; its ancestors may be new or remaining providers."""
    sound = set(remaining)
    for start in providers.values():
        path, child = {start.uuid}, start
        while (parent := child.parent_uuid) is not None and parent not in sound:
            if parent not in providers:
                raise ValueError(f"the parent {quote_value(parent)} of provider {quote_value(child.name)} is unknown")
            if parent in path:
                raise ValueError(f"provider {quote_value(providers[parent].name)} would be below itself")
            path.add(parent)
            child = providers[parent]
        sound |= path
