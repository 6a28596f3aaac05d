"""all_hosts: accept every host."""

import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class AllHosts(BaseFilter[NoOptions]):
    """Keep every host.

    Source:
        nova/scheduler/filters/all_hosts_filter.py.
    """

    nova_name = "AllHostsFilter"
    run_filter_once_per_request = True

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return False: the filter rejects no host."""
        return False

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep every host."""
        return np.ones(len(hosts), dtype=np.bool_)

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts, although every host passes."""
        return "lack nothing"
