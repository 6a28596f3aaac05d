"""server_group_affinity: members of a group share one host."""

from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.headroom import ROOM_MAX
from roost.scheduler.framework.group_slots import is_closed
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class ServerGroupAffinity:
    """Keep the hosts that have members of the group; any host while it has none; none while its only member moves.

    Source:
        nova/scheduler/filters/affinity_filter.py, ServerGroupAffinityFilter.
    """

    name: ClassVar = "server_group_affinity"
    nova_name: ClassVar = "ServerGroupAffinityFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: NoOptions) -> None:
        self._options = options

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "use"

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: only for this policy."""
        return spec.policy == "affinity"

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep the hosts of the group."""
        assert spec.group is not None
        if is_closed(spec.group):
            return np.zeros(len(hosts), dtype=np.bool_)
        if not spec.group.members:
            return np.ones(len(hosts), dtype=np.bool_)
        move = spec.request.move
        if move is None:
            shared: Mask = hosts.members(spec.group) > 0
            return shared
        # Who leaves alone may go anywhere.
        others = hosts.members(spec.group, excluding=move.instance_uuid) > 0
        return others if others.any() else ~others

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return no bound for the hosts it keeps: whoever has one member may have all."""
        return np.where(self.keep(hosts, spec), ROOM_MAX, 0)

    def is_independent(self, spec: Spec) -> bool:
        """Say no while the group has no member: the first one closes all other hosts."""
        return spec.group is not None and bool(spec.group.members)

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts lack."""
        if spec.group is not None and is_closed(spec.group):
            return "may take no member of the server group before the move of its only one is settled"
        return "hold no member of the server group"
