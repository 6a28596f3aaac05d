"""Which allocations on a node are of instances that are deleted, or elsewhere, and may go."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from roost.model.work.standing import Standing


class Instances(Protocol):
    """Knows what became of instances."""

    def standings(self, uuids: Collection[str]) -> Mapping[str, Standing]:
        """Return what is known of instances; those unknown are left out.

        Raises:
            Unavailable: it cannot be told now.
        """


class Judged(NamedTuple):
    """What becomes of allocations on a node."""

    released: tuple[str, ...]  # consumers that are deleted
    moved: tuple[str, ...]  # consumers that are elsewhere, and keep what they hold there
    doubtful: Mapping[str, str]  # consumers that stay, and what is odd about each


def judge(
    consumers: Iterable[str], *, tracked: Collection[str], standings: Mapping[str, Standing], host: str
) -> Judged:
    """Say which consumers give back what they hold on a node of a host.

    Args:
        consumers: who holds something there, by uuid.
        tracked: uuids of instances and migrations that the host knows; they keep it.
        standings: of the others; those unknown are no business of ours, and keep it.
        host: name of the service.

    Source:
        nova/compute/resource_tracker.py, _remove_deleted_instances_allocations; there what an instance on another host
        holds stays, with a warning.
    """
    released, moved, doubtful = [], [], {}
    for consumer in sorted(set(consumers) - set(tracked)):
        known = standings.get(consumer)
        if known is None or (not known.is_deleted and not known.host):
            continue  # Of somebody else, or being built: the scheduler claims before a host is told.
        if known.is_deleted:
            released.append(consumer)
        elif known.is_busy:
            continue  # Whoever works on it gives back what is left, or is about to bring it here.
        elif known.host.lower() != host.lower():
            moved.append(consumer)
        else:
            doubtful[consumer] = "is on this host, whose agent does not know it"
    return Judged(tuple(released), tuple(moved), doubtful)
