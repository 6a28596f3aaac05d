"""Server groups: instances that want to be together, or apart."""

from typing import Literal, get_args

import msgspec

from roost.model.names import AMOUNT_MAX

GroupPolicy = Literal["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", "fault-domain"]

GROUP_POLICIES = frozenset(get_args(GroupPolicy))
# Hard policies: the commit of a claim guards their places.
GUARDED_POLICIES = frozenset({"affinity", "anti-affinity", "fault-domain"})


class ServerGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A server group. ``fault-domain`` keeps members of different domains out of one rack."""

    uuid: str
    name: str = ""
    policy: GroupPolicy
    max_server_per_host: int = 1  # anti-affinity only, >= 1

    def __post_init__(self) -> None:
        if not 1 <= self.max_server_per_host <= AMOUNT_MAX:
            raise ValueError(f"max_server_per_host must be 1..{AMOUNT_MAX}, got {self.max_server_per_host}")
