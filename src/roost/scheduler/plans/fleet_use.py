"""The hosts in view of a plan, and the used amounts of each host's tree."""

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Mask, Scores
from roost.errors import NotFound
from roost.scheduler.rule_support import scopes


def hosts_in_view(state: State, zone: str | None, *, default_zone: str) -> Mask:
    """Return the living hosts of a zone, or of the fleet: bool, shape (hosts,).

    Args:
        state: the columns.
        zone: name of an availability zone; None: the whole fleet.
        default_zone: the zone of hosts without a zone.

    Raises:
        NotFound: there is no such zone.
    """
    if zone is None:
        alive: Mask = state.hosts.alive.view.copy()
        return alive
    for scope in scopes.zones(state, default_zone=default_zone):
        if scope.name == zone:
            return scope.mask
    raise NotFound("availability zone", zone)


def class_use(state: State, class_id: int) -> tuple[Scores, Scores]:
    """Return use and capacity of a class on the providers of each host's tree.

    Returns:
        Two float64, shape (hosts,), in the unit of the class. Sharing providers are in no tree.
    """
    host_of, _ = state.host_trees()
    columns, inside = state.inventory(class_id), host_of >= 0
    rows = host_of[inside]
    offered = np.where(columns.total.view > 0, columns.capacity.view, 0)
    used: Scores = np.bincount(rows, weights=columns.used.view[inside], minlength=len(state.hosts)).astype(np.float64)
    capacity: Scores = np.bincount(rows, weights=offered[inside], minlength=len(state.hosts)).astype(np.float64)
    return used, capacity


def shares_in_use(state: State) -> Scores:
    """Return the mean used share of the classes that each host offers: float64, shape (hosts,)."""
    total, classes = np.zeros(len(state.hosts)), np.zeros(len(state.hosts))
    for class_id in list(state.classes):
        used, capacity = class_use(state, class_id)
        offers = capacity > 0
        total[offers] += used[offers] / capacity[offers]
        classes += offers
    return total / np.maximum(classes, 1)


def hosts_in_use(state: State) -> Mask:
    """Return the hosts with an instance, or with use of a provider in their tree: bool, shape (hosts,)."""
    in_use: Mask = state.hosts.column("num_instances") > 0
    for class_id in list(state.classes):
        in_use |= class_use(state, class_id)[0] > 0
    return in_use


def is_in_use(state: State, row: int) -> bool:
    """Return ``hosts_in_use`` of one host."""
    if state.hosts.columns["num_instances"].each[row] > 0:
        return True
    for class_id in list(state.classes):
        used = state.inventory(class_id).used.each
        if any(provider >= 0 and used[provider] > 0 for provider in state.class_rows(class_id)[row].tolist()):
            return True
    return False
