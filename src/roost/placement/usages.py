"""Usages of a provider, from the columns, and of a project, from its consumers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from roost.engine.columns.state import Holder, State
from roost.model.writes import CLASS_MASK
from roost.placement.writes.claims import UNKNOWN_TYPE


def of_provider(state: State, row: int) -> dict[str, int]:
    """Return the used amount of each class in a provider's inventory."""
    return {
        state.class_ids.name_of(number): columns.used.each[row]
        for number, columns in sorted(state.classes.items())
        if row in columns.holders
    }


@dataclass(slots=True)
class Usage:
    """The total usage of some consumers."""

    consumer_count: int = 0
    amounts: Counter[int] = field(default_factory=Counter)  # by class id


def holders_of(state: State, project_id: str, *, user_id: str | None = None) -> Iterator[Holder]:
    """Yield the consumers of a project.

    Args:
        user_id: the user of the consumers; None: any.
    """
    for holder in state.consumers().find_by_project(project_id):
        if user_id is None or holder.user_id == user_id:
            yield holder


def by_type(state: State, holders: Iterable[Holder]) -> Mapping[str, Usage]:
    """Return the usage of consumers by consumer type."""
    usages: dict[int, Usage] = {}
    for holder in holders:
        usage = usages.setdefault(holder.type_id, Usage())
        usage.consumer_count += 1
        for inventory_id, amount in holder.takes:
            usage.amounts[inventory_id & CLASS_MASK] += amount
    types = state.consumer_types
    return {types.name_of(number) if number else UNKNOWN_TYPE: usage for number, usage in sorted(usages.items())}


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages."""
    common = Usage()
    for usage in usages:
        common.consumer_count += usage.consumer_count
        common.amounts.update(usage.amounts)
    return common


def by_class(state: State, usage: Usage) -> dict[str, int]:
    """Return the amounts of a usage by the name of the class."""
    return {state.class_ids.name_of(number): amount for number, amount in sorted(usage.amounts.items())}
