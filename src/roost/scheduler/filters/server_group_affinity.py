"""server_group_affinity: members of a group share one host."""

import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.headroom import HEADROOM_MAX
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.group_slots import is_closed
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec


class ServerGroupAffinity(BaseFilter[NoOptions]):
    """Keep the hosts of the group's members; for an empty group, keep every host.

    While the only member moves and may return to its previous host, the filter rejects every host for new members.

    Source:
        nova/scheduler/filters/affinity_filter.py, ServerGroupAffinityFilter.
    """

    nova_name = "ServerGroupAffinityFilter"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has a server group of policy ``affinity``."""
        return spec.policy == "affinity"

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep the hosts of the group's members."""
        assert spec.group is not None
        if is_closed(spec.group):
            return np.zeros(len(hosts), dtype=np.bool_)
        if not spec.group.members:
            return np.ones(len(hosts), dtype=np.bool_)
        move = spec.request.move
        if move is None:
            shared: Mask = hosts.members(spec.group) > 0
            return shared
        # If the moved instance is the only member, keep every host.
        if not hosts.has_members(spec.group, excluding=move.instance_uuid):
            return np.ones(len(hosts), dtype=np.bool_)
        others: Mask = hosts.members(spec.group, excluding=move.instance_uuid) > 0
        return others

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return no limit for accepted hosts: one host may hold all members."""
        return np.where(self.keep(hosts, spec), HEADROOM_MAX, 0)

    def is_independent(self, spec: Spec) -> bool:
        """Return False while the group is empty: its first member excludes all other hosts."""
        return spec.group is not None and bool(spec.group.members)

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        if spec.group is not None and is_closed(spec.group):
            return "accept no member of the server group while its only member moves"
        return "hold no member of the server group"
