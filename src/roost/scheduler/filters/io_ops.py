"""io_ops: hosts with few operations in flight."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.types import Mask, Scores
from roost.scheduler.hosts import HostView
from roost.scheduler.rules import Reads
from roost.scheduler.spec import Spec


class IoOpsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``io_ops`` and ``aggregate_io_ops``."""

    max_io_ops_per_host: Annotated[
        int, msgspec.Meta(ge=0, description="Hosts with so many I/O operations in flight take no instance.")
    ] = 8


class IoOps:
    """Keep hosts with fewer I/O operations in flight than the limit: builds, resizes, snapshots and the like.

    Source:
        nova/scheduler/filters/io_ops_filter.py.
    """

    name: ClassVar = "io_ops"
    nova_name: ClassVar = "IoOpsFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = IoOpsOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: IoOpsOptions) -> None:
        self._limit = options.max_io_ops_per_host

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: for every request."""
        return True

    def limits(self, hosts: HostView) -> Scores:
        """Return how many operations each host may have in flight: float64, shape (hosts,)."""
        return np.full(len(hosts), float(self._limit))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with a place left."""
        kept: Mask = hosts.column("num_io_ops") < self.limits(hosts)
        return kept

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts have."""
        return f"have {self._limit} I/O operations in flight or more"
