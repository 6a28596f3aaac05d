"""Sums over the columns, by resource class."""

from roost.engine.columns.state import State
from roost.engine.columns.types import Amounts
from roost.errors import BadRequest


def utilisation(state: State) -> dict[str, tuple[int, int]]:
    """Return the used amount and capacity of each resource class over all providers, by name."""
    found = {}
    for class_id, columns in state.classes.items():
        if columns.holders:
            used, capacity = int(columns.used.view.sum()), int(columns.capacity.view.sum())
            found[state.class_ids.name_of(class_id)] = (used, capacity)
    return dict(sorted(found.items()))


def free_by_provider(state: State, resource_class: str) -> Amounts:
    """Return the free amounts of a class.

    Returns:
        int64, shape (providers with inventory,), in order of creation; below 0 where the use exceeds the capacity.

    Raises:
        BadRequest: no provider offers the class.
    """
    class_id = state.class_ids.id_of(resource_class)
    columns = None if class_id is None else state.classes.get(class_id)
    if columns is None:
        raise BadRequest(f"no provider offers {resource_class!r}")
    free: Amounts = columns.free.view[columns.holders.rows]
    return free
