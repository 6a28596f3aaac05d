"""Places of server groups: what a pick takes, so that the commit can guard a group's rule."""

import hashlib
from functools import lru_cache

import msgspec
import numpy as np

from roost.engine.columns.state import Group
from roost.engine.columns.types import Amounts
from roost.model.names import AMOUNT_MAX
from roost.model.writes import KEPT, InstanceRow, Place

# A place whose rule sets no bound on how many share it.
_UNBOUNDED = 2**31 - 1


def place_number(name: str) -> int:
    """Return the number of a rack or a fault domain: the same in every process, 0..2**63 - 1.

    >>> place_number("rack-7") == place_number("rack-7") != place_number("rack-8")
    True
    """
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1


@lru_cache(maxsize=8)
def place_numbers(names: tuple[str, ...]) -> Amounts:
    """Return the numbers of many names at once: int64, shape (names,), read-only. Kept, since racks rarely change."""
    numbers = np.array([place_number(name) for name in names], dtype=np.int64)
    numbers.flags.writeable = False
    return numbers


def is_closed(group: Group) -> bool:
    """Say whether nobody may join a group whose members stay together: its only one moves, and may come back."""
    return group.policy == "affinity" and group.places.get(0, (0, 0))[0] < 0


def is_outside(group: Group, instance: InstanceRow, *, host_id: int | None) -> bool:
    """Say whether an instance is outside of a group whose members stay together on one host, as others are elsewhere.

    Args:
        group: the server group that its request names.
        instance: as it is.
        host_id: the host that it is on, was on, or goes back to; None: that is not there any more.
    """
    holder, members = group.places.get(0, (0, 0))
    is_counted = (instance.group_id, instance.holder) == (group.id, holder)
    return group.policy == "affinity" and members > is_counted and holder != host_id


def place_during_move(place: Place, *, number: int) -> Place:
    """Return the place of the only member of a group whose members stay together, while it moves: on no host.

    So nobody joins it, neither where it goes nor where it may come back to.

    Args:
        number: of its consumer, > 0.
    """
    return msgspec.structs.replace(place, holder=-number)


def return_place(
    group: Group | None, left: InstanceRow, *, number: int, host_id: int
) -> tuple[InstanceRow, Place] | None:
    """Return what a migration keeps of a server group, so that its instance can come back; None: it need not.

    Args:
        group: of the instance.
        left: the instance where it was.
        number: of the migration's consumer.
        host_id: where the instance goes; where it has one place for both, nothing is kept.
    """
    if group is None or group.policy not in {"anti-affinity", "fault-domain"}:
        return None
    if group.policy == "anti-affinity" and host_id == left.host_id:
        return None
    row = InstanceRow(number, left.host_id, KEPT, 0, group.id, left.scope, left.holder)
    return row, Place(group.id, left.scope, left.holder, 1, AMOUNT_MAX)


def place_of(group: Group, *, host_id: int, rack: str, domain: str) -> Place | None:
    """Return the place that a member of a group takes by going to a host.

    Args:
        group: the server group.
        host_id: the host's identity in the store.
        rack: name of the host's rack.
        domain: the request's hint ``fault_domain``, "" if it has none.

    Returns:
        The place, which the commit checks; None for a policy that only wishes.
    """
    scope, holder, limit = host_id, 0, group.limit
    if group.policy == "affinity":
        scope, holder, limit = 0, host_id, _UNBOUNDED
    elif group.policy == "fault-domain":
        scope, holder, limit = place_number(rack), place_number(domain), _UNBOUNDED
    elif group.policy != "anti-affinity":
        return None
    return Place(group_id=group.id, scope=scope, holder=holder, members=1, limit=limit)
