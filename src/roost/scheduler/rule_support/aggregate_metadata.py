"""What the metadata of aggregates says of hosts, judged once for each aggregate instead of once for each host.

Source:
    nova/scheduler/filters/utils.py.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from roost.engine.columns.types import Mask, Scores
from roost.errors import quote_value
from roost.scheduler.framework.host_view import HostView

_NAMED_MAX = 5  # aggregates in one sentence


def values_of(hosts: HostView, key: str) -> Iterator[tuple[str, Mask]]:
    """Yield each value of a key, as it is written, with the hosts in the aggregate that says so."""
    return ((metadata[key], inside) for metadata, inside in hosts.aggregate_owners() if key in metadata)


def wearing_any(hosts: HostView, key: str, is_wanted: Callable[[str], bool]) -> tuple[Mask, Mask]:
    """Say for which hosts an aggregate sets a key, and for which one of the values is wanted.

    Args:
        is_wanted: judges one part of a comma-separated list.

    Returns:
        Two masks: bool, shape (hosts,).
    """
    known, good = np.zeros((2, len(hosts)), dtype=np.bool_)
    for value, inside in values_of(hosts, key):
        known |= inside
        if any(map(is_wanted, texts(value))):
            good |= inside
    return known, good


def texts(value: str) -> list[str]:
    """Return the parts of a comma-separated list, also the empty ones.

    >>> texts("a, b,")
    ['a', 'b', '']
    """
    return [part.strip() for part in value.split(",")]


def least(hosts: HostView, key: str, *, default: float, cast: Callable[[str], float]) -> Scores:
    """Return the least number that the aggregates of each host set; the default where one cannot be read.

    Args:
        cast: reads a value; raises ValueError where it cannot.

    Returns:
        float64, shape (hosts,), read-only; made once until an aggregate changes.
    """

    def make(everyone: HostView) -> Scores:
        found: Scores = np.full(len(everyone), np.inf)
        is_unread: Mask = np.zeros(len(everyone), dtype=np.bool_)
        for value, inside in values_of(everyone, key):
            number = _read(value, cast)
            if number is None:
                is_unread |= inside
            else:
                np.minimum(found, number, out=found, where=inside)
        found[is_unread | (found == np.inf)] = default
        return found

    return hosts.remembered(("least", hosts.epoch, key, default, cast), make)


def unread(hosts: HostView, key: str, *, cast: Callable[[str], float]) -> list[str]:
    """Say which values of a key are no numbers, a sentence each."""
    names: dict[str, list[str]] = {}
    for name, metadata in hosts.aggregate_metadata():
        value = metadata.get(key)
        if value is not None and _read(value, cast) is None:
            names.setdefault(value, []).append(name)
    return [
        f"aggregate metadata {key}={quote_value(value)} of {_some(those)} is no number; the default holds for its hosts"
        for value, those in sorted(names.items())
    ]


def _some(names: list[str]) -> str:
    """Name some aggregates, and say how many more there are."""
    shown, more = sorted(names)[:_NAMED_MAX], len(names) - _NAMED_MAX
    return f"{', '.join(shown)} and {more} more" if more > 0 else ", ".join(shown)


def _read(value: str, cast: Callable[[str], float]) -> float | None:
    try:
        number = float(cast(value))
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number
