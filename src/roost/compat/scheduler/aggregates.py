"""Metadata of the aggregates of a host."""

import logging
import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from roost.compat.scheduler.host_state import HostState

_log = logging.getLogger(__name__)
_Number = TypeVar("_Number", int, float)


def aggregate_values_from_key(host_state: HostState, key_name: str) -> set[str]:
    """Return the values of a metadata key in a host's aggregates, not split at commas."""
    return {each.metadata[key_name] for each in host_state.aggregates if key_name in each.metadata}


def aggregate_metadata_get_by_host(host_state: HostState, key: str | None = None) -> dict[str, set[str]]:
    """Return all metadata of a host's aggregates, with every value split at commas.

    With a key, return all metadata of the aggregates with that key, and ignore the other aggregates.
    """
    metadata: dict[str, set[str]] = {}
    for each in host_state.aggregates:
        if key is None or key in each.metadata:
            for name, value in each.metadata.items():
                metadata.setdefault(name, set()).update(part.strip() for part in value.split(","))
    return metadata


def validate_num_values(
    vals: Iterable[str],
    default: _Number,
    cast_to: Callable[[str], _Number],
    based_on: Callable[[list[_Number]], _Number],
) -> _Number:
    """Reduce values to one number; ``default`` without values.

    Raises:
        ValueError: a value is not a number.
    """
    numbers = [cast_to(value) for value in vals]
    if not numbers:
        return default
    if any(math.isnan(number) for number in numbers):
        raise ValueError("a value is not a number")
    if len(numbers) > 1:
        _log.info("%d values are set, one of them is used", len(numbers))
    return based_on(numbers)


def number_from(host_state: HostState, key: str, *, default: _Number, cast_to: Callable[[str], _Number]) -> _Number:
    """Return the smallest number set by a host's aggregates; ``default`` if no value exists or a value is invalid."""
    try:
        return validate_num_values(aggregate_values_from_key(host_state, key), default, cast_to, min)
    except ValueError as error:
        _log.warning("could not read %s of the aggregates of %s: %s", key, host_state.host, error)
        return default
