"""Server groups for Nova's filters."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from roost.compat.objects import current_fleet
from roost.compat.objects.record import Record


@dataclass(slots=True, kw_only=True)
class InstanceGroup(Record):
    """A server group: its policy, the uuids of its members, and their hosts."""

    uuid: str = ""
    name: str = ""
    policy: str
    members: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    rules: dict[str, int] = field(default_factory=dict)

    @property
    def policies(self) -> list[str]:
        """The policy as a list, for older plug-ins."""
        return [self.policy]

    def get_hosts(self, exclude: Iterable[str] = ()) -> list[str]:
        """Return the hosts of the members that are not in ``exclude``."""
        members = set(self.members) - set(exclude)
        return current_fleet.hosts_with(members) if exclude else list(self.hosts)

    @classmethod
    def get_by_uuid(cls, context: object, uuid: str) -> "InstanceGroup":  # Nova's signature.
        """Return a server group.

        Raises:
            InstanceGroupNotFound: the group does not exist.
        """
        group: InstanceGroup = current_fleet.get_group(uuid)
        return group

    @classmethod
    def get_by_instance_uuid(cls, context: object, instance_uuid: str) -> "InstanceGroup":  # Nova's signature.
        """Return the server group of an instance.

        Raises:
            InstanceGroupNotFound: the instance has no group.
        """
        group: InstanceGroup = current_fleet.get_group_of(instance_uuid)
        return group
