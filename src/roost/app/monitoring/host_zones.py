"""The zones of hosts, without cached views of the columns, for a thread beside the deciding one."""

from collections.abc import Callable

from roost.engine.columns.state import State
from roost.scheduler.rule_support.scopes import ZONE, split_names


def read_zones(state: State) -> dict[int, list[str]]:
    """Return the zones by number of the aggregate, without empty lists."""
    zones = {aggregate: split_names(metadata.get(ZONE, "")) for aggregate, metadata in list(state.metadata.items())}
    return {aggregate: names for aggregate, names in zones.items() if names}


def zone_finder(state: State, *, default_zone: str) -> Callable[[frozenset[int]], str]:
    """Return a function from the numbers of a host's aggregates to its zone.

    The zone is the first one by name, if a host has several. It is empty for a host without a zone, if an aggregate
    defines the default zone; see ``scopes.zones``. The function reads the zones of all aggregates at its first call.
    """
    read: list[tuple[dict[int, list[str]], str]] = []

    def find(aggregates: frozenset[int]) -> str:
        if not read:
            zones = read_zones(state)
            is_defined = any(default_zone in names for names in zones.values())
            read.append((zones, "" if is_defined else default_zone))
        zones, otherwise = read[0]
        return min((zone for aggregate in aggregates for zone in zones.get(aggregate, ())), default=otherwise)

    return find
