"""same_host: hosts with one of the named instances."""

import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.headroom import HEADROOM_MAX
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec


class SameHost(BaseFilter[NoOptions]):
    """Keep hosts with at least one instance of the hint ``same_host``.

    Source:
        nova/scheduler/filters/affinity_filter.py, SameHostFilter.
    """

    nova_name = "SameHostFilter"
    hints = ("same_host",)
    run_filter_once_per_request = True

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has the hint ``same_host``."""
        return bool(spec.hint_list("same_host"))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with at least one named instance."""
        return hosts.holds_any(spec.hint_list("same_host"))

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return no limit for accepted hosts: the hint never names a new instance."""
        return np.where(self.keep(hosts, spec), HEADROOM_MAX, 0)

    def is_independent(self, spec: Spec) -> bool:
        """Return True: only the named instances matter."""
        return True

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "hold no instance that the hint same_host names"
