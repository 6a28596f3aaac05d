"""Single resources of a host: its driver names each, and one guest at a time has it, as with persistent memory."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import quote_value
from roost.model.work.guest_use import GuestUse

# Uuid of each provider of a host -> resource class -> names of all pieces there are of it; {} where none is named.
Providers = Mapping[str, Mapping[str, Collection[str]]]


class Chosen(NamedTuple):
    """The pieces of a guest."""

    names: tuple[str, ...]
    lacks: tuple[str, ...]  # a sentence for each class of which too few are free; nothing of that is among the names


def pieces_in(tree: ProviderTree, root: str) -> dict[str, dict[str, frozenset[str]]]:
    """Return the providers of a host with the pieces that its driver named.

    Raises:
        ValueError: one has no text as its name, or the name of another.
    """
    found: dict[str, dict[str, frozenset[str]]] = {}
    known: set[str] = set()
    for uuid in tree.get_provider_uuids(root):
        pieces = found[uuid] = {}
        for name, told in tree.data(uuid).resources.items():
            texts = frozenset(each for each in told if isinstance(each, str) and each)
            if twice := sorted(texts & known):
                raise ValueError(f"two pieces are named {quote_value(twice[0])}")
            if len(texts) < len(told):
                raise ValueError(f"a piece of {name} has no text as its name")
            known |= texts
            pieces[name] = texts
    return found


def choose(
    allocations: Mapping[str, Mapping[str, int]], providers: Providers, *, taken: Collection[str], own: Collection[str]
) -> Chosen:
    """Choose as many pieces for a guest as it holds of each class that has any, those first that it has already.

    Args:
        allocations: provider uuid -> resource class -> amount.
        providers: of the host; what is held of others is not looked at.
        taken: names of those that others have.
        own: names of those that the guest has.
    """
    names, lacks = list[str](), list[str]()
    for uuid, amounts in allocations.items():
        for resource_class, pieces in providers.get(uuid, {}).items():
            wanted = amounts.get(resource_class, 0)
            free = sorted((each for each in pieces if each not in taken), key=lambda each: (each not in own, each))
            if wanted > len(free):
                lacks.append(f"the host lacks {wanted:,} {resource_class}: {len(free):,} of {len(pieces):,} are free")
            else:
                names += free[:wanted]
    return Chosen(tuple(names), tuple(lacks))


def names_of(uses: Iterable[GuestUse]) -> frozenset[str]:
    """Return the names of all pieces that guests have."""
    return frozenset(name for use in uses for name in use.pieces)


def missing(uses: Mapping[str, GuestUse], providers: Providers) -> dict[str, list[str]]:
    """Return who has pieces that are not there any more, and their names."""
    there = {name for pieces in providers.values() for names in pieces.values() for name in names}
    gone = {holder: sorted({*use.pieces} - there) for holder, use in uses.items()}
    return {holder: names for holder, names in gone.items() if names}
