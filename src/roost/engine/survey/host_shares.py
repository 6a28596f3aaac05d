"""The used share of each host, by resource class."""

from dataclasses import dataclass

import numpy as np

from roost.engine.columns.state import State
from roost.engine.columns.types import Rows, Scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassShares:
    """The use of one class by all hosts.

    Args:
        resource_class: name of the class.
        used: used amount of all hosts.
        capacity: capacity of all hosts.
        shares: float64, shape (hosts,), used amount by capacity; NaN: the host has no capacity.
    """

    resource_class: str
    used: int
    capacity: int
    shares: Scores


def read_shares(state: State) -> tuple[Rows, list[ClassShares]]:
    """Return the living hosts and their use of each class, with the providers of their trees.

    Returns:
        The rows of hosts, ascending: intp, shape (hosts,); and the classes that hosts offer, by name.
    """
    rows: Rows = np.flatnonzero(state.hosts.alive.view)
    host_of, _ = state.host_trees()
    inside = np.flatnonzero(host_of >= 0)
    found = []
    for class_id, columns in state.classes.items():
        amounts = [
            np.bincount(host_of[inside], weights=column.view[inside], minlength=len(state.hosts))[rows]
            for column in (columns.used, columns.capacity)
        ]
        used, capacity = amounts
        if capacity.sum() > 0:
            shares = np.divide(used, capacity, out=np.full(len(rows), np.nan), where=capacity > 0)
            found.append(
                ClassShares(
                    resource_class=state.class_ids.name_of(class_id),
                    used=int(used.sum()),
                    capacity=int(capacity.sum()),
                    shares=shares,
                )
            )
    return rows, sorted(found, key=lambda each: each.resource_class)
