"""Aggregate metadata as masks and columns of hosts, read once per aggregate.

Source:
    nova/scheduler/filters/utils.py.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from roost.engine.columns.types import Mask, Scores
from roost.errors import quote_value
from roost.scheduler.framework.host_view import HostView

_NAMES_MAX = 5  # upper bound on the aggregates named in one warning


def values_by_aggregate(hosts: HostView, key: str) -> Iterator[tuple[str, Mask]]:
    """Yield each aggregate's value of a key, unchanged, with the mask of its hosts."""
    return ((metadata[key], inside) for metadata, inside in hosts.aggregate_members() if key in metadata)


def match_aggregates(hosts: HostView, key: str, accepts: Callable[[str], bool]) -> tuple[Mask, Mask]:
    """Return which hosts have a key in an aggregate, and which have an accepted value of it.

    Args:
        accepts: accepts or rejects one part of a comma-separated list.

    Returns:
        Two masks: bool, shape (hosts,).
    """
    has_key, has_value = np.zeros((2, len(hosts)), dtype=np.bool_)
    for value, inside in values_by_aggregate(hosts, key):
        has_key |= inside
        if any(map(accepts, split_values(value))):
            has_value |= inside
    return has_key, has_value


def split_values(value: str) -> list[str]:
    """Split a comma-separated list, including empty parts.

    >>> split_values("a, b,")
    ['a', 'b', '']
    """
    return [part.strip() for part in value.split(",")]


def lowest_value(hosts: HostView, key: str, *, default: float, cast: Callable[[str], float]) -> Scores:
    """Return the lowest number of each host's aggregates; the default if no value exists or a value is invalid.

    Args:
        cast: parses a value; raises ValueError if it is invalid.

    Returns:
        float64, shape (hosts,), read-only; cached until an aggregate changes.
    """

    def make(all_hosts: HostView) -> Scores:
        numbers: Scores = np.full(len(all_hosts), np.inf)
        is_invalid: Mask = np.zeros(len(all_hosts), dtype=np.bool_)
        for value, inside in values_by_aggregate(all_hosts, key):
            number = _parse_number(value, cast)
            if number is None:
                is_invalid |= inside
            else:
                np.minimum(numbers, number, out=numbers, where=inside)
        numbers[is_invalid | (numbers == np.inf)] = default
        return numbers

    return hosts.memoize(("lowest", hosts.epoch, key, default, cast), make)


def unreadable_warnings(hosts: HostView, key: str, *, cast: Callable[[str], float]) -> list[str]:
    """Return a warning for each value of a key that is not a valid number."""
    names: dict[str, list[str]] = {}
    for name, metadata in hosts.aggregate_metadata():
        value = metadata.get(key)
        if value is not None and _parse_number(value, cast) is None:
            names.setdefault(value, []).append(name)
    return [
        f"aggregate metadata {key}={quote_value(value)} of {_list_names(owners)} is not a valid number; "
        "the default holds for its hosts"
        for value, owners in sorted(names.items())
    ]


def _list_names(names: list[str]) -> str:
    """List the first names, and count the rest."""
    shown, rest = sorted(names)[:_NAMES_MAX], len(names) - _NAMES_MAX
    return f"{', '.join(shown)} and {rest} more" if rest > 0 else ", ".join(shown)


def _parse_number(value: str, cast: Callable[[str], float]) -> float | None:
    try:
        number = float(cast(value))
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number
