"""A slow search for plans that make room: every sequence of moves, each by a real decision on a fork."""

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

    def placed(fleet: Roost) -> Placed:
        return tuple((uuid, host_of(fleet, uuid)) for uuid in sorted(instances))

    reached, seen = [roost], {placed(roost)}
    for count in range(1, moves_max + 1):
        further: list[Roost] = []
        for fleet in reached:
            for uuid, host in placed(fleet):
                for target in hosts:
                    after = tuple((each, target if each == uuid else at) for each, at in placed(fleet))
                    if target == host or after in seen:
                        continue
                    fork = after_move(fleet, instances[uuid], uuid, target)
                    if fork is None:
                        continue
                    seen.add(after)
                    if is_granted(fork, request):
                        return count
                    further.append(fork)
        reached = further
    return None
