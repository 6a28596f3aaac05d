"""Transitions of operations that no simulation takes, each with its reason."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from types import MappingProxyType

from roost.conductor.operation.events import Transition

# Pattern of "kind step event next-step" -> reason.
UNREACHED: Mapping[str, str] = MappingProxyType(
    {
        "* finish DONE undo": "a client of the Placement API changed the allocations meanwhile",
        "* finish DONE restart": "a client of the Placement API changed the allocations meanwhile",
        "spawn spawn DONE clearing": "a client of the Placement API changed the allocations meanwhile",
        "* prepare DONE clear": "a driver returned no address of a prepared guest",
        "shelve save DONE back": "a driver returned no id of a saved image",
        "rebuild send STARTED end": "the stored request is invalid since a change of settings",
        "evacuate spawn DONE sweep": "an old host was up already, which waits for the end of its evacuations",
        "evacuate sweep * *": "an old host was up already, which waits for the end of its evacuations",
    }
)


def reason_of(transition: Transition) -> str:
    """Return why no simulation takes a transition; empty: it should."""
    name = " ".join(transition)
    return next((reason for pattern, reason in UNREACHED.items() if fnmatch(name, pattern)), "")


def group_by_reason(transitions: Iterable[Transition]) -> dict[str, list[str]]:
    """Return the names of transitions by the reason why no simulation takes them."""
    groups: dict[str, list[str]] = {}
    for transition in sorted(transitions):
        groups.setdefault(reason_of(transition), []).append(" ".join(transition))
    return groups
