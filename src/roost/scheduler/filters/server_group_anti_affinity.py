"""server_group_anti_affinity: members of a group run on different hosts."""

import numpy as np

from roost.engine.columns.state import Group
from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.headroom import HEADROOM_MAX
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec


class ServerGroupAntiAffinity(BaseFilter[NoOptions]):
    """Keep hosts with fewer members of the group than its ``max_server_per_host``.

    An instance that moves may stay on its host. Until its move is confirmed or reverted, a member counts on both hosts.

    Source:
        nova/scheduler/filters/affinity_filter.py, ServerGroupAntiAffinityFilter.
    """

    nova_name = "ServerGroupAntiAffinityFilter"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has a server group of policy ``anti-affinity``."""
        return spec.policy == "anti-affinity"

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with a free slot."""
        assert spec.group is not None
        has_slot: Mask = _slots_in_use(hosts, spec.group) < spec.group.limit
        return has_slot if spec.moved_uuid is None else has_slot | hosts.holds_instance(spec.moved_uuid)

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return the free slots of each host; no limit on a host where the instance may stay."""
        assert spec.group is not None
        free: Amounts = np.clip(spec.group.limit - _slots_in_use(hosts, spec.group), 0, HEADROOM_MAX)
        return free if spec.moved_uuid is None else np.where(hosts.holds_instance(spec.moved_uuid), HEADROOM_MAX, free)

    def is_independent(self, spec: Spec) -> bool:
        """Return True: only members on the same host count."""
        return True

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        limit = 1 if spec.group is None else spec.group.limit
        return "hold a member of the server group" if limit == 1 else f"hold {limit} members of the server group"


def _slots_in_use(hosts: HostView, group: Group) -> Amounts:
    return hosts.members(group) + hosts.pending_returns(group)
