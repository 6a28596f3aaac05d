"""same_host: hosts with one of the named instances."""

from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.feasibility.headroom import HEADROOM_MAX
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class SameHost:
    """Keep hosts with at least one instance of the hint ``same_host``.

    Source:
        nova/scheduler/filters/affinity_filter.py, SameHostFilter.
    """

    name: ClassVar = "same_host"
    nova_name: ClassVar = "SameHostFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    run_filter_once_per_request: ClassVar = True
    run_on_rebuild: ClassVar = False

    def __init__(self, options: NoOptions) -> None:
        self._options = options

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "use"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has the hint ``same_host``."""
        return bool(spec.hint_list("same_host"))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with at least one of these instances."""
        return hosts.holds_any(spec.hint_list("same_host"))

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return no limit for accepted hosts: a new instance is never one of those named."""
        return np.where(self.keep(hosts, spec), HEADROOM_MAX, 0)

    def is_independent(self, spec: Spec) -> bool:
        """Return True: only the named instances matter."""
        return True

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return "hold no instance that the hint same_host names"
