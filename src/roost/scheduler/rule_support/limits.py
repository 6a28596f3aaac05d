"""Limits of what a host may have, from the settings or from its aggregates: what filters of that kind share."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask, Scores
from roost.engine.feasibility.headroom import ROOM_MAX
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import least_value, unreadable_warnings


class InstancesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``num_instances`` and ``aggregate_num_instances``."""

    max_instances_per_host: Annotated[
        int, msgspec.Meta(ge=1, description="Hosts with so many instances take no more.")
    ] = 50


class IoOpsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``io_ops`` and ``aggregate_io_ops``."""

    max_io_ops_per_host: Annotated[
        int, msgspec.Meta(ge=0, description="Hosts with so many I/O operations in flight take no instance.")
    ] = 8


class BelowLimit:
    """Keep hosts with less than a limit."""

    column: ClassVar[str]  # of what is limited
    noun: ClassVar[str]  # of the same, in reasons

    def __init__(self, limit: float | Scores) -> None:
        self.limit = limit  # of all hosts, or of each: float64, shape (hosts,)

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: for every request."""
        return True

    def host_limits(self, hosts: HostView) -> float | Scores:
        """Return the limit of all hosts, or of each: float64, shape (hosts,)."""
        return self.limit

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts below their limits."""
        kept: Mask = hosts.column(self.column) < self.host_limits(hosts)
        return kept

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts have."""
        return f"have {self.limit} {self.noun} or more"


class BelowAggregateLimit(BelowLimit):
    """Keep hosts with less than the least limit of their aggregates, or of the settings."""

    key: ClassVar[str]  # in the metadata of aggregates

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.default = limit  # where no aggregate says otherwise

    def host_limits(self, hosts: HostView) -> Scores:
        """Return the limit of each host: float64, shape (hosts,)."""
        return least_value(hosts, self.key, default=self.default, cast=int)

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say which limits cannot be read."""
        return unreadable_warnings(hosts, self.key, cast=int)

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts have."""
        return f"have as many {self.noun} as their aggregates, or the settings, allow"


class _UseLimit(BelowLimit):
    """Keep hosts where claims and tasks bring what is limited nearer to its limit."""

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "use"

    def is_independent(self, spec: Spec) -> bool:
        """Say yes: only what a host has itself counts."""
        return True


class InstanceLimit(_UseLimit):
    """Keep hosts with fewer instances than a limit."""

    column: ClassVar = "num_instances"
    noun: ClassVar = "instances"

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return how much short of the limit each host is."""
        free = np.clip(self.host_limits(hosts) - hosts.column(self.column), 0, ROOM_MAX)
        return free.astype(np.int64)


class IoOpsLimit(_UseLimit):
    """Keep hosts with fewer I/O operations than a limit."""

    column: ClassVar = "num_io_ops"
    noun: ClassVar = "I/O operations in flight"

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return that hosts below the limit take any number: what is built is an operation for a while only."""
        room: Amounts = np.where(self.keep(hosts, spec), ROOM_MAX, 0)
        return room
