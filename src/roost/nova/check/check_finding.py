"""One line of the check of a deployment."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

Level = Literal["ok", "warning", "error"]
Part = Literal["settings", "broker", "databases", "placement", "neutron"]
_NAMES_MAX = 3


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the check."""

    level: Level  # error: Roost cannot choose hosts; warning: something differs, or fails for some hosts
    part: Part
    found: str
    advice: str = ""  # what to do; empty: nothing


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return whether a finding is an error."""
    return any(each.level == "error" for each in findings)


def shorten_names(names: Iterable[str]) -> str:
    """Return the first names, and the number of the others.

    >>> shorten_names(["cmp2", "cmp1"]), shorten_names(f"cmp{number}" for number in range(5))
    ('cmp1, cmp2', 'cmp0, cmp1, cmp2 and 2 more')
    """
    found = sorted(set(names))
    shown = ", ".join(found[:_NAMES_MAX])
    return shown if len(found) <= _NAMES_MAX else f"{shown} and {len(found) - _NAMES_MAX:,} more"


def count_of(items: Sequence[object] | int, noun: str) -> str:
    """Return a number and its noun.

    >>> count_of(1, "host"), count_of(["a", "b"], "host")
    ('1 host', '2 hosts')
    """
    number = items if isinstance(items, int) else len(items)
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
