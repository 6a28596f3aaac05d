"""Filters with an upper limit per host, from the settings or from aggregates."""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask, Scores
from roost.engine.feasibility.headroom import HEADROOM_MAX
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import lowest_value, unreadable_warnings
from roost.scheduler.rule_support.number_filter import NumberFilter


class InstancesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``num_instances`` and ``aggregate_num_instances``."""

    max_instances_per_host: Annotated[int, msgspec.Meta(ge=1, description="Upper bound on instances per host.")] = 50


class IoOpsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``io_ops`` and ``aggregate_io_ops``."""

    max_io_ops_per_host: Annotated[
        int,
        msgspec.Meta(ge=0, description="Hosts with this many I/O operations in flight, or more, accept no instance."),
    ] = 8


class BelowLimit(NumberFilter):
    """Keep hosts below a limit."""

    column: ClassVar[str]  # with the limited quantity
    noun: ClassVar[str]  # name of the quantity in reasons

    def host_limits(self, hosts: HostView) -> float | Scores:
        """Return one limit for all hosts, or one per host: float64, shape (hosts,)."""
        return self.number

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts below their limits."""
        mask: Mask = hosts.column(self.column) < self.host_limits(hosts)
        return mask

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"have {self.number} {self.noun} or more"


class BelowAggregateLimit(BelowLimit):
    """Keep hosts below the lowest limit of their aggregates, else of the settings."""

    def host_limits(self, hosts: HostView) -> Scores:
        """Return the limit of each host: float64, shape (hosts,)."""
        return lowest_value(hosts, self.number_option, default=self.default, cast=int)

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn about invalid limits."""
        return unreadable_warnings(hosts, self.number_option, cast=int)

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"have as many {self.noun} as aggregates of the host, or the settings, allow"


class _UseLimit(BelowLimit):
    """Keep hosts below a limit on their instances or I/O operations."""

    def is_independent(self, spec: Spec) -> bool:
        """Return True: only the host's own use counts."""
        return True


class InstanceLimit(_UseLimit):
    """Keep hosts with fewer instances than a limit."""

    options = InstancesOptions
    number_option = "max_instances_per_host"
    column = "num_instances"
    noun = "instances"

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return the distance of each host from its limit."""
        free = np.clip(self.host_limits(hosts) - hosts.column(self.column), 0, HEADROOM_MAX)
        return free.astype(np.int64)


class IoOpsLimit(_UseLimit):
    """Keep hosts with fewer I/O operations than a limit."""

    options = IoOpsOptions
    number_option = "max_io_ops_per_host"
    column = "num_io_ops"
    noun = "I/O operations in flight"

    def room(self, hosts: HostView, spec: Spec) -> Amounts:
        """Return HEADROOM_MAX for accepted hosts and 0 for the others, because builds count only until they end."""
        room: Amounts = np.where(self.keep(hosts, spec), HEADROOM_MAX, 0)
        return room
