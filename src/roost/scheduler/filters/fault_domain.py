"""fault_domain: group members of different fault domains never share a rack."""

import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.headroom import HEADROOM_MAX
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.group_slots import place_number, place_numbers
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec


class FaultDomain(BaseFilter[NoOptions]):
    """Keep hosts in racks without members of other fault domains; the hint ``fault_domain`` names the domain.

    A host without a known rack is rejected, because its rack could hold members of other domains.
    """

    nova_name = ""

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has a server group of policy ``fault-domain``."""
        return spec.policy == "fault-domain"

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts in racks of this domain, and in racks without members."""
        assert spec.group is not None
        domain = place_number(spec.hint("fault_domain", "") or "")
        foreign_racks = [scope for scope, (holder, _) in spec.group.places.items() if holder != domain]
        is_open: Mask = ~np.isin(place_numbers(hosts.rack_names()), np.array(foreign_racks, dtype=np.int64))
        is_open[0] = False  # Index 0 stands for an unknown rack.
        verdicts: Mask = is_open[hosts.racks()]
        return verdicts

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return no limit for accepted hosts: members of one domain may share a rack."""
        return np.where(self.keep(hosts, spec), HEADROOM_MAX, 0)

    def is_independent(self, spec: Spec) -> bool:
        """Return True: a new member excludes only other domains from its rack."""
        return True

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "share a rack with another fault domain of the server group, or are in no known rack"
