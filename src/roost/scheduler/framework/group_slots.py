"""Slots of server groups: each claim takes one, so that the commit can guard the group's policy."""

import hashlib
from functools import lru_cache

import msgspec
import numpy as np

from roost.engine.columns.state import Group
from roost.engine.columns.types import Amounts
from roost.model.names import AMOUNT_MAX
from roost.model.writes import KEPT, InstanceRow, Place

# Limit of a slot that any number of members may share.
_UNBOUNDED = 2**31 - 1


def place_number(name: str) -> int:
    """Return the number of a rack or fault domain: equal in every process, 0..2**63 - 1.

    >>> place_number("rack-7") == place_number("rack-7") != place_number("rack-8")
    True
    """
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1


@lru_cache(maxsize=8)
def place_numbers(names: tuple[str, ...]) -> Amounts:
    """Return the numbers of many names: int64, shape (names,), read-only; cached, because racks rarely change."""
    numbers = np.array([place_number(name) for name in names], dtype=np.int64)
    numbers.flags.writeable = False
    return numbers


def is_closed(group: Group) -> bool:
    """Return whether an affinity group accepts no new member, because its only member moves and may return."""
    return group.policy == "affinity" and group.places.get(0, (0, 0))[0] < 0


def is_outside(group: Group, instance: InstanceRow, *, host_id: int | None) -> bool:
    """Return whether an instance is on another host than the members of its affinity group.

    Args:
        group: the server group of its request.
        instance: the stored row of the instance.
        host_id: its present, previous or next host; None: this host was deleted.
    """
    holder, members = group.places.get(0, (0, 0))
    is_counted = (instance.group_id, instance.holder) == (group.id, holder)
    return group.policy == "affinity" and members > is_counted and holder != host_id


def place_during_move(place: Place, *, number: int) -> Place:
    """Return the slot of an affinity group's only member while it moves: on no host, so that no other member can join.

    Args:
        place: the slot on a host.
        number: number of its consumer, > 0.
    """
    return msgspec.structs.replace(place, holder=-number)


def return_place(
    group: Group | None, departed: InstanceRow, *, number: int, host_id: int
) -> tuple[InstanceRow, Place] | None:
    """Return the row and slot that a migration keeps for the return of its instance; None: not necessary.

    Args:
        group: the instance's server group.
        departed: the instance on its previous host.
        number: number of the migration's consumer.
        host_id: the new host; an anti-affinity group needs only one slot if it is the previous host.
    """
    if group is None or group.policy not in {"anti-affinity", "fault-domain"}:
        return None
    if group.policy == "anti-affinity" and host_id == departed.host_id:
        return None
    row = InstanceRow(number, departed.host_id, KEPT, 0, group.id, departed.scope, departed.holder)
    return row, Place(group.id, departed.scope, departed.holder, 1, AMOUNT_MAX)


def place_of(group: Group, *, host_id: int, rack: str, domain: str) -> Place | None:
    """Return the slot that a new group member takes on a host.

    Args:
        group: the server group.
        host_id: the host's identity in the store.
        rack: the host's rack.
        domain: the request's hint ``fault_domain``, or "".

    Returns:
        The slot, checked by the commit; None for soft policies.
    """
    scope, holder, limit = host_id, 0, group.limit
    if group.policy == "affinity":
        scope, holder, limit = 0, host_id, _UNBOUNDED
    elif group.policy == "fault-domain":
        scope, holder, limit = place_number(rack), place_number(domain), _UNBOUNDED
    elif group.policy != "anti-affinity":
        return None
    return Place(group_id=group.id, scope=scope, holder=holder, members=1, limit=limit)
