"""Dedicated processors: allocated as VCPU until a host offers PCPU, and as PCPU from then on."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from roost.compute.providers.held_allocations import Allocations
from roost.observe import log

VCPU, PCPU = "VCPU", "PCPU"


class Processors(NamedTuple):
    """The processors of a guest."""

    shared: int
    dedicated: int


def is_due(root: Collection[str], guests: Mapping[str, Processors], *, was_offered: bool, is_offered: bool) -> bool:
    """Return whether dedicated processors are about to become PCPU for the first time.

    Args:
        root: resource classes of the root, which offers the processors so far.
        guests: processors of the guests, by uuid.
        was_offered, is_offered: whether the node had PCPU, and will have it.
    """
    return is_offered and not was_offered and VCPU in root and any(each.dedicated for each in guests.values())


def to_move(allocations: Allocations, root: str, guests: Mapping[str, Processors]) -> dict[str, int]:
    """Return the amounts of VCPU on a root for dedicated processors, by consumer.

    The consumer of a migration took over the allocations of a departing guest, so it counts the processors of this
    guest. Allocations without a guest stay.

    Args:
        allocations: allocations of all consumers.
        root: uuid of the root.
        guests: processors of the guests, by uuid.
    """
    leaving = [each for uuid, each in guests.items() if uuid not in allocations]
    found = {}
    for consumer, record in allocations.items():
        held = record["allocations"][root]["resources"].get(VCPU, 0) if root in record["allocations"] else 0
        uses = guests.get(consumer)
        if uses is None and (uses := next((each for each in leaving if sum(each) == held), None)) is not None:
            leaving.remove(uses)
        if not held or uses is None or not uses.dedicated:
            continue
        if uses.dedicated > held:
            log.event("uses_differ", consumer=consumer, resource_class=VCPU, held=held, used=uses.dedicated)
        found[consumer] = uses.dedicated
    return found


def move(allocations: Allocations, root: str, amounts: Mapping[str, int]) -> None:
    """Turn amounts of VCPU of a root into PCPU, in place."""
    for consumer, amount in amounts.items():
        resources = allocations[consumer]["allocations"][root]["resources"]
        left = resources.pop(VCPU) - amount
        if left > 0:
            resources[VCPU] = left
        resources[PCPU] = amount
