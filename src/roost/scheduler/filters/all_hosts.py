"""all_hosts: accept every host."""

from typing import ClassVar

import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class AllHosts:
    """Keep every host.

    Source:
        nova/scheduler/filters/all_hosts_filter.py.
    """

    name: ClassVar = "all_hosts"
    nova_name: ClassVar = "AllHostsFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = NoOptions
    run_filter_once_per_request: ClassVar = True
    run_on_rebuild: ClassVar = False

    def __init__(self, options: NoOptions) -> None:
        self._options = options

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
