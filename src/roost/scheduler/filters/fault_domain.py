"""fault_domain: members of a group that are of different domains keep out of each other's racks."""

from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.headroom import ROOM_MAX
from roost.scheduler.framework.group_slots import place_number, place_numbers
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class FaultDomain:
    """Keep hosts in racks that hold no member of another domain; the hint ``fault_domain`` names the domain.

    A host whose rack is not known is refused: nobody can say whom it would share it with.
    """

    name: ClassVar = "fault_domain"
    nova_name: ClassVar = ""
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
        return spec.policy == "fault-domain"

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts in racks of this domain, or of none."""
        assert spec.group is not None
        domain = place_number(spec.hint("fault_domain", "") or "")
        foreign_racks = [scope for scope, (holder, _) in spec.group.places.items() if holder != domain]
        is_open: Mask = ~np.isin(place_numbers(hosts.rack_names()), np.array(foreign_racks, dtype=np.int64))
        is_open[0] = False  # The rack of hosts whose rack nobody told.
        verdicts: Mask = is_open[hosts.racks()]
        return verdicts

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return no bound for the hosts it keeps: members of one domain may share a rack."""
        return np.where(self.keep(hosts, spec), ROOM_MAX, 0)

    def is_independent(self, spec: Spec) -> bool:
        """Say yes: a member takes a rack that is open to its domain and closes none to it."""
        return True

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts do."""
        return "share a rack with another fault domain of the server group, or are in no known rack"
