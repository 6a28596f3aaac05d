"""Counterpart of ``nova.scheduler.utils``, for filters and weighers."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from roost.compat.scheduler.aggregates import number_from

_log = logging.getLogger(__name__)


def parse_options(
    opts: Iterable[str], sep: str = "=", converter: Callable[[str], Any] = str, name: str = ""
) -> list[tuple[str, Any]]:
    """Parse entries ``name=value``; invalid entries are logged and skipped."""
    entries: list[tuple[str, Any]] = []
    invalid: list[str] = []
    for entry in opts:
        key, separator, text = entry.partition(sep)
        try:
            value = converter(text)
        except ValueError:
            value = None
        if key and separator and value is not None:
            entries.append((key, value))
        else:
            invalid.append(entry)
    if invalid:
        _log.warning("invalid entries of %s are ignored: %s", name, ", ".join(invalid))
    return entries


def get_weight_multiplier(host_state: Any, multiplier_name: str, multiplier_config: float) -> float:
    """Return the smallest multiplier set by the aggregates of a host, else the configured one."""
    return number_from(host_state, multiplier_name, default=multiplier_config, cast_to=float)


def request_is_rebuild(spec_obj: Any) -> bool:
    """Return whether a request only checks a rebuild on the current host."""
    if not spec_obj or "scheduler_hints" not in spec_obj:
        return False
    return bool(spec_obj.scheduler_hints.get("_nova_check_type") == ["rebuild"])
