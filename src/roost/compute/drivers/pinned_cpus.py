"""Processors that instances have for themselves: held as VCPU before a host offers PCPU, and as PCPU from then on."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from roost.compute.providers.held_allocations import Allocations
from roost.observe import log

VCPU, PCPU = "VCPU", "PCPU"


class Processors(NamedTuple):
    """What a guest uses of the processors of its host."""

    shared: int
    own: int


def is_due(root: Collection[str], guests: Mapping[str, Processors], *, was_offered: bool, is_offered: bool) -> bool:
    """Say whether processors of guests' own are offered as such, and were not before.

    Args:
        root: classes of the provider that offers processors so far.
        guests: what each uses, by uuid.
        was_offered, is_offered: whether there was PCPU anywhere on the node, and is to be.
    """
    return is_offered and not was_offered and VCPU in root and any(each.own for each in guests.values())


def to_move(allocations: Allocations, root: str, guests: Mapping[str, Processors]) -> dict[str, int]:
    """Return who holds VCPU of a root for processors of its own, and for how many.

    The consumer of a move holds for a guest that is leaving, and has that one's processors. Who has no guest yet
    keeps what it holds.

    Args:
        allocations: all that is held.
        root: uuid of the provider.
        guests: what each uses, by uuid.
    """
    leaving = [each for uuid, each in guests.items() if uuid not in allocations]
    found = {}
    for consumer, record in allocations.items():
        held = record["allocations"][root]["resources"].get(VCPU, 0) if root in record["allocations"] else 0
        uses = guests.get(consumer)
        if uses is None and (uses := next((each for each in leaving if sum(each) == held), None)) is not None:
            leaving.remove(uses)
        if not held or uses is None or not uses.own:
            continue
        if uses.own > held:
            log.event("uses_differ", consumer=consumer, resource_class=VCPU, held=held, used=uses.own)
        found[consumer] = uses.own
    return found


def move(allocations: Allocations, root: str, amounts: Mapping[str, int]) -> None:
    """Let consumers hold amounts as PCPU of a root that they held as VCPU; edits in place."""
    for consumer, amount in amounts.items():
        resources = allocations[consumer]["allocations"][root]["resources"]
        left = resources.pop(VCPU) - amount
        if left > 0:
            resources[VCPU] = left
        resources[PCPU] = amount
