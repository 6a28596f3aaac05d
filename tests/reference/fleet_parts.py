"""Slow twins of the parts of a fleet: the owner of a host, and the decision within a part."""

from collections.abc import Sequence
from typing import Any

from tests.reference import scheduler as slow

_BITS = 2**64


def owner(host_id: int, processes: Sequence[int]) -> int:
    """Return the process with the highest weight for a host; of equal weights, the first."""
    return max(processes, key=lambda process: _mix(host_id ^ _mix(process)))


def _mix(number: int) -> int:
    number = (number + 0x9E3779B97F4A7C15) % _BITS
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % _BITS
    number = (number ^ number >> 27) * 0x94D049BB133111EB % _BITS
    return number ^ number >> 31


def decide(world: slow.World, wish: slow.Wish, own: frozenset[str], **options: Any) -> tuple[slow.Outcome, bool | None]:
    """Decide within a part of the fleet, else in the whole fleet.

    Args:
        world, wish: the deployment and the request.
        own: names of the hosts in the part.
        options: as for ``slow.decide``.

    Returns:
        The outcome, and whether it is within the part; None: the request needs the whole fleet.
    """
    group = None if wish.group is None else world.groups[wish.group]
    is_soft = group is not None and group.policy.startswith("soft")
    leaves_cell = wish.cell is not None and wish.may_leave_cell
    if is_soft or wish.forced or wish.destination is not None or leaves_cell:
        return slow.decide(world, wish, **options), None
    world.part = own
    outcome = slow.decide(world, wish, **options)
    world.part = None
    return (outcome, True) if outcome.is_granted else (slow.decide(world, wish, **options), False)
