"""Finds the allocations of deleted and moved instances on a node."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from roost.model.work.standing import Standing


class Instances(Protocol):
    """A look-up of instances."""

    def standings(self, uuids: Collection[str]) -> Mapping[str, Standing]:
        """Return host and state of each known instance.

        Raises:
            Unavailable: the server does not answer now.
        """


class Judgment(NamedTuple):
    """The consumers whose allocations on a node are released, and those to warn about."""

    released: tuple[str, ...]  # deleted consumers
    moved: tuple[str, ...]  # consumers on other hosts, which keep their allocations there
    doubtful: Mapping[str, str]  # consumers that keep their allocations, and the problem of each


def judge(
    consumers: Iterable[str], *, tracked: Collection[str], standings: Mapping[str, Standing], host: str
) -> Judgment:
    """Find the consumers to release on a node.

    Args:
        consumers: uuids of those with allocations on the node.
        tracked: uuids of instances and migrations that the host tracks; they keep their allocations.
        standings: of the others; unknown ones keep their allocations.
        host: name of the service.

    Source:
        nova/compute/resource_tracker.py, _remove_deleted_instances_allocations; there allocations of an
        instance on another host stay, with a warning.
    """
    released, moved, doubtful = [], [], {}
    for consumer in sorted(set(consumers) - set(tracked)):
        standing = standings.get(consumer)
        if standing is None or (not standing.is_deleted and not standing.host):
            continue  # It is not an instance, or is being built: the scheduler claims before it sends the order.
        if standing.is_deleted:
            released.append(consumer)
        elif standing.is_busy:
            continue  # Its operation releases these allocations, or moves the instance to this host.
        elif standing.host.lower() != host.lower():
            moved.append(consumer)
        else:
            doubtful[consumer] = "is on this host, whose agent does not know it"
    return Judgment(tuple(released), tuple(moved), doubtful)
