"""Pieces: resources with individual names, such as persistent memory namespaces. Each piece serves one guest."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import quote_value
from roost.model.work.guest_use import GuestUse

# Uuid of a host's provider -> resource class -> names of all its pieces.
Providers = Mapping[str, Mapping[str, Collection[str]]]


class Chosen(NamedTuple):
    """The pieces of a guest."""

    names: tuple[str, ...]
    shortfalls: tuple[str, ...]  # one sentence for each class with too few free pieces


def pieces_in(tree: ProviderTree, root: str) -> dict[str, dict[str, frozenset[str]]]:
    """Return the pieces of a host, as its driver named them, by provider.

    Raises:
        ValueError: two pieces have one name, or a name is empty or not a text.
    """
    found: dict[str, dict[str, frozenset[str]]] = {}
    known: set[str] = set()
    for uuid in tree.get_provider_uuids(root):
        pieces = found[uuid] = {}
        for name, named in tree.data(uuid).resources.items():
            texts = frozenset(each for each in named if isinstance(each, str) and each)
            if duplicates := sorted(texts & known):
                raise ValueError(f"two pieces are named {quote_value(duplicates[0])}")
            if len(texts) < len(named):
                raise ValueError(f"a piece of {name} has no text as its name")
            known |= texts
            pieces[name] = texts
    return found


def choose(
    allocations: Mapping[str, Mapping[str, int]], providers: Providers, *, taken: Collection[str], own: Collection[str]
) -> Chosen:
    """Choose one piece per allocated unit of each class; prefer the guest's present pieces.

    Args:
        allocations: provider uuid -> resource class -> amount.
        providers: the pieces of the host by provider; allocations on other providers are ignored.
        taken: names of the pieces of other guests.
        own: names of the guest's present pieces.
    """
    names, shortfalls = list[str](), list[str]()
    for uuid, amounts in allocations.items():
        for resource_class, pieces in providers.get(uuid, {}).items():
            needed = amounts.get(resource_class, 0)
            free = sorted((each for each in pieces if each not in taken), key=lambda each: (each not in own, each))
            if needed > len(free):
                shortfalls.append(
                    f"the guest needs {needed:,} {resource_class}, but {len(free):,} of {len(pieces):,} are free"
                )
            else:
                names += free[:needed]
    return Chosen(tuple(names), tuple(shortfalls))


def names_of(uses: Iterable[GuestUse]) -> frozenset[str]:
    """Return the names of all pieces in use."""
    return frozenset(name for use in uses for name in use.pieces)


def find_missing(uses: Mapping[str, GuestUse], providers: Providers) -> dict[str, list[str]]:
    """Return the names of used pieces that the providers no longer have, by holder."""
    present = {name for pieces in providers.values() for names in pieces.values() for name in names}
    gone = {holder: sorted({*use.pieces} - present) for holder, use in uses.items()}
    return {holder: names for holder, names in gone.items() if names}
