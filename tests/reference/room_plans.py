"""A slow search for plans that make room: every sequence of moves, each by a real decision on a fork."""

from collections.abc import Iterator
from statistics import pstdev

import msgspec

from roost.app import Roost
from roost.errors import RoostError
from roost.model.fleet import Departure
from roost.model.names import uuid_bytes
from roost.model.request import Destination, Move, Request

MIGRATION = "00000000-0000-4000-8000-00000000000f"
Placed = tuple[tuple[str, str], ...]  # uuid and host of each instance, by uuid


def move_to(request: Request, uuid: str, host: str) -> list[Request | Departure]:
    """Return the acts to move an instance to a host and to release its previous allocations."""
    move = Move(instance_uuid=uuid, migration_uuid=MIGRATION)
    destination = msgspec.structs.replace(request.destination or Destination(), host=host)
    moving = msgspec.structs.replace(request, count=1, instance_uuids=(uuid,), move=move, destination=destination)
    return [moving, Departure(instance_uuids=(MIGRATION,))]


def is_granted(roost: Roost, request: Request) -> bool:
    """Return whether a request would be granted now."""
    (result,) = roost.outcomes([request], dry_run=True)
    return not isinstance(result, RoostError) and result is not None and result.is_granted


def after_move(roost: Roost, request: Request, uuid: str, host: str) -> Roost | None:
    """Return a fork on which an instance has moved; None: a rule refuses the move."""
    moving, departure = move_to(request, uuid, host)
    if not is_granted(roost, moving):
        return None
    fork = roost.fork()
    fork.work([moving, departure])
    return fork


def host_of(roost: Roost, uuid: str) -> str:
    """Return the host of an instance."""
    state = roost.state
    instance = state.holders[uuid_bytes(uuid)].instance
    return state.hosts.names[state.hosts.row_of_id[instance.host_id]]


def placed(roost: Roost, instances: dict[str, Request]) -> Placed:
    """Return the hosts of instances."""
    return tuple((uuid, host_of(roost, uuid)) for uuid in sorted(instances))


def after_each_move(
    roost: Roost, instances: dict[str, Request], *, targets: list[str], seen: set[Placed]
) -> Iterator[Roost]:
    """Yield forks on which one instance has moved to a target, if its placement was not seen yet."""
    before = placed(roost, instances)
    for at, (uuid, host) in enumerate(before):
        for target in targets:
            after = (*before[:at], (uuid, target), *before[at + 1 :])
            if target == host or after in seen:
                continue
            fork = after_move(roost, instances[uuid], uuid, target)
            if fork is not None:
                seen.add(after)
                yield fork


def fewest_moves(roost: Roost, request: Request, instances: dict[str, Request], *, moves_max: int) -> int | None:
    """Return the fewest moves after which a request is granted, None if there are none up to a bound.

    Args:
        roost: the fleet.
        request: for one new instance.
        instances: the requests of the instances that can move, by uuid.
        moves_max: the bound.
    """
    if is_granted(roost, request):
        return 0
    hosts = list(roost.state.hosts.names)
    reached, seen = [roost], {placed(roost, instances)}
    for count in range(1, moves_max + 1):
        further: list[Roost] = []
        for fleet in reached:
            for fork in after_each_move(fleet, instances, targets=hosts, seen=seen):
                if is_granted(fork, request):
                    return count
                further.append(fork)
        reached = further
    return None


def can_empty(roost: Roost, instances: dict[str, Request], host: str, *, moves_max: int) -> bool:
    """Return whether some moves to other hosts can leave a host without instances.

    Args:
        roost: the fleet; all its instances can move.
        instances: their requests, by uuid.
        host: its name.
        moves_max: upper bound on the moves.
    """
    targets = [name for name in roost.state.hosts.names if name != host]
    reached, seen = [roost], {placed(roost, instances)}
    for spare in range(moves_max, -1, -1):
        further: list[Roost] = []
        for fleet in reached:
            left = sum(at == host for _, at in placed(fleet, instances))
            if not left:
                return True
            if left <= spare:
                further += after_each_move(fleet, instances, targets=targets, seen=seen)
        reached = further
    return False


def drain_in_order(roost: Roost, instances: dict[str, Request], hosts: list[str]) -> int:
    """Return how many instances stay if each of some hosts' instances moves once, to where it is placed best."""
    fork, staying = roost.fork(), 0
    for uuid, request in instances.items():
        if host_of(fork, uuid) in hosts:
            move = Move(instance_uuid=uuid, migration_uuid=MIGRATION)
            moving = msgspec.structs.replace(request, instance_uuids=(uuid,), move=move, ignore_hosts=tuple(hosts))
            decision, _ = fork.work([moving, Departure(instance_uuids=(MIGRATION,))])
            staying += decision is None or not decision.is_granted
    return staying


def most_emptied(roost: Roost, instances: dict[str, Request], *, moves_max: int) -> int:
    """Return the most hosts that some moves can leave without instances; hosts empty at the start take none.

    Args:
        roost: the fleet; all its instances can move.
        instances: their requests, by uuid.
        moves_max: upper bound on the moves.
    """
    in_use = sorted({host_of(roost, uuid) for uuid in instances})
    best = 0
    reached, seen = [roost], set[Placed]()
    for spare in range(moves_max, -1, -1):
        further: list[Roost] = []
        for fleet in reached:
            hosts = [host for _, host in placed(fleet, instances)]
            counts = sorted(map(hosts.count, in_use))
            best = max(best, counts.count(0))
            # Each further host takes as many moves as it has instances.
            possible = max(count for count in range(len(counts) + 1) if sum(counts[:count]) <= spare)
            if possible <= best:
                continue
            further += after_each_move(fleet, instances, targets=in_use, seen=seen)
        reached = further
    return best


def best_spread(roost: Roost, instances: dict[str, Request], *, resource_class: str) -> tuple[float, float]:
    """Return the standard deviation of the used shares now, and the smallest after one move.

    Args:
        roost: the fleet; all its instances can move.
        instances: their requests, by uuid.
        resource_class: the shares are of this class.
    """
    now = spread_of(roost, resource_class)
    best = now
    for uuid, request in instances.items():
        for target in roost.state.hosts.names:
            if target != host_of(roost, uuid):
                fork = after_move(roost, request, uuid, target)
                best = best if fork is None else min(best, spread_of(fork, resource_class))
    return now, best


def spread_of(roost: Roost, resource_class: str) -> float:
    """Return the standard deviation of the used shares of all hosts."""
    state = roost.state
    columns = state.inventory(state.class_ids.id_of(resource_class))
    used, capacity = dict[int, int](), dict[int, int]()
    for row in range(len(state.providers)):
        root = int(state.providers.root.view[row])
        if columns.total.view[row] > 0:
            used[root] = used.get(root, 0) + int(columns.used.view[row])
            capacity[root] = capacity.get(root, 0) + int(columns.capacity.view[row])
    return pstdev(used[root] / capacity[root] for root in used)
