"""The parts of a fleet that people ask about: its availability zones and its aggregates."""

from typing import NamedTuple

from roost.engine.columns.state import State
from roost.engine.columns.types import Mask

ZONE = "availability_zone"  # key in the metadata of an aggregate: the zones it makes up


class Scope(NamedTuple):
    """Some hosts under one name."""

    name: str
    uuid: str  # of an aggregate; a zone has none
    mask: Mask  # bool, shape (hosts,); the living ones


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated list.

    >>> split_names("east, west,")
    ['east', 'west']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def aggregates_by_zone(state: State) -> dict[str, set[int]]:
    """Return which aggregates make up each zone, by their numbers in ``state.aggregates``."""
    by_zone: dict[str, set[int]] = {}
    for aggregate, metadata in state.metadata.items():
        for zone in split_names(metadata.get(ZONE, "")):
            by_zone.setdefault(zone, set()).add(aggregate)
    return by_zone


def zones(state: State, *, default_zone: str) -> list[Scope]:
    """Return the zones by name; hosts that no aggregate gives one are in the default zone.

    Where an aggregate makes up a zone of that name, it alone is that zone, as it is for requests.
    """
    roots, alive = state.hosts.provider_row.view, state.hosts.alive.view
    scopes = [
        Scope(zone, "", state.membership.wearing_any(aggregates)[roots] & alive)
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
    """Return the aggregates by name: the hosts whose root provider is in each."""
    roots, alive = state.hosts.provider_row.view, state.hosts.alive.view
    scopes = [
        Scope(name, state.aggregates.name_of(aggregate), state.membership.wearing(aggregate)[roots] & alive)
        for aggregate, name in state.aggregate_names.items()
    ]
    return sorted(scopes, key=lambda scope: (scope.name, scope.uuid))
