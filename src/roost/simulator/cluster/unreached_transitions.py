"""Transitions of operations that no simulation takes, each with its reason."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from types import MappingProxyType

from roost.conductor.operation.events import Transition

# Pattern of "kind step event next-step" -> reason.
UNREACHED: Mapping[str, str] = MappingProxyType(
    {
        "* finish DONE undo": "no client of the Placement API changes allocations meanwhile",
        "revert discard HOST_GONE end": "no client of the Placement API changes allocations meanwhile",
        "spawn spawn DONE clearing": "no client of the Placement API changes allocations meanwhile",
        "shelve save DONE back": "every driver returns the id of a saved image",
        "rebuild send STARTED end": "no change of settings makes stored requests invalid",
        "confirm part STARTED end": "this step begins without an order only if old and new host are the same",
        "live_migrate undo DONE sweep": "a guest does not arrive between two orders to its target",
        "evacuate spawn DONE sweep": "an old host is not up before its evacuations have ended",
        "evacuate sweep * *": "an old host is not up before its evacuations have ended",
    }
)


def reason_of(transition: Transition) -> str:
    """Return why no simulation takes a transition; empty: a simulation should take it."""
    name = " ".join(transition)
    return next((reason for pattern, reason in UNREACHED.items() if fnmatch(name, pattern)), "")


def group_by_reason(transitions: Iterable[Transition]) -> dict[str, list[str]]:
    """Return the names of transitions by the reason why no simulation takes them."""
    groups: dict[str, list[str]] = {}
    for transition in sorted(transitions):
        groups.setdefault(reason_of(transition), []).append(" ".join(transition))
    return groups
