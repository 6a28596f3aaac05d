"""Parts of a fleet: its availability zones and its aggregates."""

from typing import NamedTuple

from roost.engine.columns.state import State
from roost.engine.columns.types import Mask

ZONE = "availability_zone"  # metadata key of an aggregate: the names of its zones


class Scope(NamedTuple):
    """A named set of hosts."""

    name: str
    uuid: str  # of an aggregate; empty for a zone
    mask: Mask  # bool, shape (hosts,); live hosts only


def split_names(text: str) -> list[str]:
    """Split a comma-separated list into names, without empty parts.

    >>> split_names("east, west,")
    ['east', 'west']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def has_zone(state: State, zone: str) -> bool:
    """Return whether an aggregate defines a zone; for each request, so most aggregates cost one search in a text."""
    texts = (metadata[ZONE] for metadata in state.metadata.values() if ZONE in metadata)
    return any(zone in text and zone in split_names(text) for text in texts)


def aggregates_by_zone(state: State) -> dict[str, set[int]]:
    """Return the aggregates of each zone, by their numbers in ``state.aggregates``."""
    by_zone: dict[str, set[int]] = {}
    for aggregate, metadata in state.metadata.items():
        for zone in split_names(metadata.get(ZONE, "")):
            by_zone.setdefault(zone, set()).add(aggregate)
    return by_zone


def zones(state: State, *, default_zone: str) -> list[Scope]:
    """Return the zones ordered by name; hosts without a zone belong to the default zone.

    If an aggregate defines the default zone, only hosts of such aggregates belong to it. Requests use the same rule.
    """
    roots, alive = state.hosts.provider_row.view, state.hosts.alive.view
    scopes = [
        Scope(zone, "", state.membership.mask_of_any(aggregates)[roots] & alive)
        for zone, aggregates in aggregates_by_zone(state).items()
    ]
    if all(scope.name != default_zone for scope in scopes):
        rest: Mask = alive.copy()
        for scope in scopes:
            rest &= ~scope.mask
        if rest.any():
            scopes.append(Scope(default_zone, "", rest))
    return sorted(scopes, key=lambda scope: scope.name)


def aggregates(state: State) -> list[Scope]:
    """Return the aggregates ordered by name, each with the hosts whose root provider is a member."""
    roots, alive = state.hosts.provider_row.view, state.hosts.alive.view
    scopes = [
        Scope(name, state.aggregates.name_of(aggregate), state.membership.mask_of(aggregate)[roots] & alive)
        for aggregate, name in state.aggregate_names.items()
    ]
    return sorted(scopes, key=lambda scope: (scope.name, scope.uuid))
