"""Server groups as Nova's filters read them."""

from dataclasses import dataclass, field

from roost.compat.objects.record import Record


@dataclass(slots=True, kw_only=True)
class InstanceGroup(Record):
    """A server group: its policy, its members by uuid, and the hosts they are on."""

    uuid: str = ""
    name: str = ""
    policy: str
    members: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    rules: dict[str, int] = field(default_factory=dict)

    @property
    def policies(self) -> list[str]:
        """The policy, as the list that older plug-ins read."""
        return [self.policy]
