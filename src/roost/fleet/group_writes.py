"""Server groups: the writes that create them."""

from roost.errors import BadRequest
from roost.fleet.name_rules import check_name, uuid_bytes_of
from roost.model.group import GROUP_POLICIES, ServerGroup
from roost.model.writes import PutGroup
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
