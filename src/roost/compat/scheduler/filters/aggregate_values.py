"""Counterpart of ``nova.scheduler.filters.utils``: aggregates and instances of a host, for filters."""

from collections.abc import Callable, Iterable
from typing import Any

from roost.compat.scheduler import aggregates
from roost.compat.scheduler.aggregates import aggregate_metadata_get_by_host, aggregate_values_from_key

__all__ = [
    "aggregate_metadata_get_by_host",
    "aggregate_values_from_key",
    "instance_uuids_overlap",
    "validate_num_values",
]


def instance_uuids_overlap(host_state: Any, uuids: str | Iterable[str]) -> bool:
    """Return whether a host has any of the given instances."""
    instance_uuids = [uuids] if isinstance(uuids, str) else uuids
    return any(each in host_state.instances for each in instance_uuids)


def validate_num_values(
    vals: Iterable[str],
    default: Any = None,
    cast_to: Callable[[str], Any] = int,
    based_on: Callable[[list[Any]], Any] = min,
) -> Any:
    """Reduce values to one number with ``based_on``. Without values, return ``default``.

    Raises:
        ValueError: a value is not a number.
    """
    return aggregates.validate_num_values(vals, default, cast_to, based_on)
