"""different_host: hosts without any of the named instances."""

import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.headroom import HEADROOM_MAX
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec


class DifferentHost(BaseFilter[NoOptions]):
    """Keep hosts without any instance of the hint ``different_host``.

    Source:
        nova/scheduler/filters/affinity_filter.py, DifferentHostFilter.
    """

    nova_name = "DifferentHostFilter"
    hints = ("different_host",)
    run_filter_once_per_request = True

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has the hint ``different_host``."""
        return bool(spec.hint_list("different_host"))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts without the named instances."""
        return ~hosts.holds_any(spec.hint_list("different_host"))

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return no limit for accepted hosts: the hint never names a new instance."""
        return np.where(self.keep(hosts, spec), HEADROOM_MAX, 0)

    def is_independent(self, spec: Spec) -> bool:
        """Return True: only the named instances matter."""
        return True

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "hold an instance that the hint different_host names"
