"""num_instances: hosts with few instances."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.room import ROOM_MAX
from roost.engine.types import Amounts, Mask, Scores
from roost.scheduler.hosts import HostView
from roost.scheduler.rules import Reads
from roost.scheduler.spec import Spec


class NumInstancesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``num_instances`` and ``aggregate_num_instances``."""

    max_instances_per_host: Annotated[
        int, msgspec.Meta(ge=1, description="Hosts with so many instances take no more.")
    ] = 50


class NumInstances:
    """Keep hosts with fewer instances than the limit.

    Source:
        nova/scheduler/filters/num_instances_filter.py.
    """

    name: ClassVar = "num_instances"
    nova_name: ClassVar = "NumInstancesFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = NumInstancesOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: NumInstancesOptions) -> None:
        self._limit = options.max_instances_per_host

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "use"

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: for every request."""
        return True

    def limits(self, hosts: HostView) -> Scores:
        """Return how many instances each host may have: float64, shape (hosts,)."""
        return np.full(len(hosts), float(self._limit))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with a place left."""
        kept: Mask = hosts.column("num_instances") < self.limits(hosts)
        return kept

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return how many instances short of the limit each host is."""
        left = np.clip(self.limits(hosts) - hosts.column("num_instances"), 0, ROOM_MAX)
        return left.astype(np.int64)

    def leaves_others(self, spec: Spec) -> bool:
        """Say yes: only the instances on a host itself count."""
        return True

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts have."""
        return f"have {self._limit} instances or more"
