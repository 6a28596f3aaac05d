"""Plans of moves, and drains of hosts, in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.schemas.decisions import InstanceRequestBody
from roost.model.evidence.move_plans import FLEET_MOVES_LIMIT, FLEET_MOVES_MAX, MOVES_LIMIT, MOVES_MAX
from roost.model.work.change_memory import MoveState
from roost.model.work.move_windows import WINDOWS_MAX
from roost.model.work.operation import AT_ONCE_MAX

# Maximum number of further hosts in a plan.
WITH_HOSTS_MAX = 1_000
# Longest time until the deadline of a plan, in seconds: 30 days.
DEADLINE_MAX_S = 2_592_000
_FleetMoves = Annotated[Annotated[int, Meta(ge=1, le=FLEET_MOVES_LIMIT)], Meta(description="Maximum number of moves.")]
_Zone = Annotated[str | None, Meta(description="Only hosts of this availability zone; null: all hosts.")]
_Name = Annotated[str, Meta(max_length=255)]
_Number = Annotated[int, Meta(ge=1, le=FLEET_MOVES_LIMIT)]


class DrainBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a drain."""

    dry_run: Annotated[bool, Meta(description="Whether to plan only: no instance moves.")] = False
    at_once: Annotated[
        Annotated[int, Meta(ge=1, le=AT_ONCE_MAX)],
        Meta(description="Maximum number of instances that move at the same time."),
    ] = 2
    disable: Annotated[
        bool, Meta(description="Whether to disable the service first, so that no new instances arrive.")
    ] = True
    with_hosts: Annotated[
        Annotated[list[str], Meta(max_length=WITH_HOSTS_MAX)],
        Meta(description="Only in a dry run: further hosts that are drained after this one, and take no instance."),
    ] = []


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """The planned move of one instance."""

    uuid: Annotated[str, Meta(description="Uuid of the instance.")]
    name: Annotated[str, Meta(description="Name of the instance.")]
    status: Annotated[str, Meta(description="Status of the instance.")]
    source: Annotated[str, Meta(description="Service that the instance leaves.")]
    how: Annotated[str, Meta(description="live_migrate, migrate or offload; empty: it stays.")]
    host: Annotated[str, Meta(description="Service of the target host; empty: none.")]
    problem: Annotated[str, Meta(description="Reason for staying.")]


class DrainPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The planned moves of a drain, provided that nothing else changes."""

    host: Annotated[str, Meta(description="Name of the service.")]
    moves: Annotated[list[PlannedMove], Meta(description="One move per instance, in order of their start.")]
    problems: Annotated[
        dict[str, str], Meta(description="The hosts of with_hosts that cannot be drained, with the reason.")
    ] = {}


class RoomBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for a plan to make room: for a request, or for the request of a stored decision."""

    request: Annotated[
        InstanceRequestBody | None, Meta(description="The request, for one instance; null: that of the decision.")
    ] = None
    decision: Annotated[str | None, Meta(description="Uuid of a stored decision; null: see request.")] = None
    moves: Annotated[Annotated[int, Meta(ge=1, le=MOVES_LIMIT)], Meta(description="Maximum number of moves.")] = (
        MOVES_MAX
    )


class ConsolidationBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for a plan to empty hosts."""

    hosts: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of hosts to empty; null, also for share: as many as possible."),
    ] = None
    share: Annotated[
        Annotated[float, Meta(gt=0, le=100)] | None,
        Meta(description="Instead of hosts: percent of the hosts in view, rounded up."),
    ] = None
    zone: _Zone = None
    moves: _FleetMoves = FLEET_MOVES_MAX


class HostsDrainBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for a plan to empty given hosts."""

    hosts: Annotated[
        Annotated[list[str], Meta(min_length=1, max_length=WITH_HOSTS_MAX)],
        Meta(description="Names of the services to empty; they take no instances."),
    ]
    moves: _FleetMoves = FLEET_MOVES_LIMIT
    extra: Annotated[
        Annotated[int, Meta(ge=0, le=FLEET_MOVES_LIMIT)],
        Meta(description="Of them, maximum number of moves of instances on other hosts, to make room."),
    ] = FLEET_MOVES_MAX


class BalanceBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for a plan to balance hosts."""

    resource_class: Annotated[str, Meta(description="Resource class of the used shares.")] = "VCPU"
    zone: _Zone = None
    moves: _FleetMoves = FLEET_MOVES_MAX


class MoveBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A move of a plan."""

    number: Annotated[_Number, Meta(description="Number of the move in the plan.")]
    instance_uuid: Annotated[_Name, Meta(description="Uuid of the instance.")]
    source: Annotated[_Name, Meta(description="Service that the instance leaves.")]
    target: Annotated[_Name, Meta(description="Service of the target host; empty: the instance is offloaded.")] = ""
    after: Annotated[
        Annotated[list[_Number], Meta(max_length=FLEET_MOVES_LIMIT)],
        Meta(description="Numbers of the earlier moves that must be done first."),
    ] = []


class ApplyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The moves of a plan, and their limits."""

    moves: Annotated[
        Annotated[list[MoveBody], Meta(min_length=1, max_length=FLEET_MOVES_LIMIT)],
        Meta(description="The moves, in order; each instance moves once."),
    ]
    dry_run: Annotated[bool, Meta(description="Whether to rehearse only: no instance moves.")] = False
    at_once: Annotated[
        Annotated[int, Meta(ge=1, le=AT_ONCE_MAX)],
        Meta(description="Maximum number of instances that move at the same time."),
    ] = 2
    per_host: Annotated[
        Annotated[int, Meta(ge=1, le=AT_ONCE_MAX)],
        Meta(description="Maximum number of concurrent moves to or from one host."),
    ] = 2
    per_group: Annotated[
        Annotated[int, Meta(ge=1, le=AT_ONCE_MAX)],
        Meta(description="Maximum number of concurrent moves in one server group."),
    ] = 1
    deadline_s: Annotated[
        Annotated[float, Meta(gt=0, le=DEADLINE_MAX_S)] | None,
        Meta(description="Seconds from now on after which no move begins; null: no deadline."),
    ] = None
    windows: Annotated[
        Annotated[list[str], Meta(max_length=WINDOWS_MAX)],
        Meta(
            description=(
                "Windows of time in UTC, such as 22:00-06:00 or sat,sun@22:00-06:00; outside of all, no move begins."
            )
        ),
    ] = []


class RehearsedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move of a plan, rehearsed on the present fleet."""

    number: Annotated[int, Meta(description="Number of the move in the plan.")]
    instance_uuid: Annotated[str, Meta(description="Uuid of the instance.")]
    instance: Annotated[str, Meta(description="Name of the instance; empty: unknown.")]
    source: Annotated[str, Meta(description="Service that the instance leaves.")]
    target: Annotated[str, Meta(description="Service of the target host; empty: the instance is offloaded.")]
    state: Annotated[MoveState, Meta(description="done, failed or skipped.")]
    problem: Annotated[str, Meta(description="Reason why it would fail or be skipped.")]


class RehearsedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The moves of a plan, rehearsed one after the other, provided that nothing else changes."""

    moves: list[RehearsedMove]
