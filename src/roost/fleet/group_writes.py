"""Server groups: the writes that create and delete them."""

from roost.engine.columns.state import Group
from roost.errors import BadRequest, Conflict
from roost.fleet.name_rules import check_name, uuid_bytes_of
from roost.model.group import GROUP_POLICIES, ServerGroup
from roost.model.writes import DropGroup, PutGroup, Write
from roost.ports import FleetLedger


def group_creation(journal: FleetLedger, group: ServerGroup) -> PutGroup:
    """Plan the creation of a server group.

    Args:
        group: the group, with an unused uuid.

    Raises:
        BadRequest: the uuid or name is malformed, or the policy is unknown.
    """
    check_name(group.name, f"server group {group.uuid}")
    if group.policy not in GROUP_POLICIES:
        raise BadRequest(f"server group {group.uuid}: there is no policy {group.policy!r}")
    body = uuid_bytes_of(group.uuid, "server group")
    return PutGroup(journal.new_id("group"), body, group.name, group.policy, group.max_server_per_host)


def count_instances(group: Group) -> int:
    """Return the number of members with allocations, or the number of places kept for members, if it is higher."""
    return max(sum(group.members.values()), sum(group.kept.values()))


def group_deletion(group: Group, *, instance_count: int) -> tuple[Write, ...]:
    """Plan the deletion of a server group.

    Args:
        instance_count: the number of its instances.

    Raises:
        Conflict: it has instances.
    """
    if instance_count:
        instances = "instance" if instance_count == 1 else "instances"
        raise Conflict(f"server group {group.uuid} has {instance_count:,} {instances}: delete them first")
    return (DropGroup(group.id),)
