"""The overview of a fleet, and its history."""

from typing import Annotated

import msgspec
from msgspec import Meta

_POINTS_MAX = 1_000


class HostCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts by state; each host counts once."""

    up: Annotated[int, Meta(description="Enabled hosts that are up.")]
    down: Annotated[int, Meta(description="Hosts that are down, enabled or not.")]
    disabled: Annotated[int, Meta(description="Disabled hosts that are up.")]


class ClassUse(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one resource class in the fleet."""

    used: Annotated[int, Meta(description="Allocated amount.")]
    capacity: Annotated[int, Meta(description="Total less reserved amounts, times the allocation ratios.")]
    share: Annotated[float, Meta(description="Used share of the capacity; 0 without capacity.")]


class AgentCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The agents by their last contact."""

    reporting: Annotated[int, Meta(description="Agents with a contact within service_down_time.")]
    silent: Annotated[int, Meta(description="Agents without a recent contact that have not left.")]
    gone: Annotated[int, Meta(description="Agents that have left, or were given up.")]


class OperationCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The operations, with sub-operations."""

    open: Annotated[dict[str, int], Meta(description="Number of open operations, by kind.")]
    oldest_at_s: Annotated[
        float | None,
        Meta(description="Time of the oldest open request, in seconds since the epoch; null: none."),
    ]
    failed: Annotated[int, Meta(description="Operations that failed since since_s.")]


class RefusalCount(msgspec.Struct, frozen=True, kw_only=True):
    """Refusals for one reason."""

    reason: Annotated[str, Meta(description="The reason, without numbers.")]
    count: Annotated[int, Meta(description="Number of refused requests.")]


class RefusalCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Recent refusals."""

    count: Annotated[int, Meta(description="Refused requests since since_s.")]
    is_complete: Annotated[bool, Meta(description="Whether all were counted; false: only the newest were read.")]
    reasons: Annotated[list[RefusalCount], Meta(description="By reason, most frequent first; at most 10.")]


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """The last audit or backup."""

    at_s: Annotated[float, Meta(description="Its time, in seconds since the epoch.")]
    findings: Annotated[int, Meta(description="Number of findings of an audit.")]
    size_bytes: Annotated[int, Meta(description="Size of a backup.")]


class FleetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The overview of a fleet."""

    now_s: Annotated[float, Meta(description="Time of the overview, in seconds since the epoch.")]
    since_s: Annotated[float, Meta(description="Start of the last hour, for failures and refusals.")]
    hosts: HostCounts
    resources: Annotated[dict[str, ClassUse], Meta(description="Use by resource class.")]
    consumers: Annotated[int, Meta(description="Consumers with allocations, such as instances and migrations.")]
    instances: Annotated[
        dict[str, int] | None,
        Meta(description="Instances that Roost runs, by status; null: the database is in memory."),
    ]
    agents: Annotated[AgentCounts | None, Meta(description="Agents; null: the database is in memory.")]
    operations: Annotated[OperationCounts | None, Meta(description="Operations; null: the database is in memory.")]
    refusals: RefusalCounts
    audit: Annotated[LastRun | None, Meta(description="The last recorded audit; null: none.")]
    backup: Annotated[LastRun | None, Meta(description="The last recorded backup; null: none.")]


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A span of the history."""

    since: Annotated[
        float | None, Meta(description="Start, in seconds since the epoch; null: a day before the end.")
    ] = None
    until: Annotated[float | None, Meta(description="End, in seconds since the epoch; null: now.")] = None
    points: Annotated[int, Meta(ge=1, le=_POINTS_MAX, description="Upper bound of the number of periods.")] = 240
    resource_class: Annotated[
        str | None, Meta(description="Only the amounts of this resource class; null: of all.")
    ] = msgspec.field(name="class", default=None)
    zone: Annotated[
        str | None, Meta(description="Only the amounts of this availability zone; null: the sums of all.")
    ] = None
