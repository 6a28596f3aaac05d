"""Operations in answers."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.api.v1.wire.pages import PageQuery
from roost.model.work.change_memory import MoveState
from roost.model.work.operation import Kind
from roost.model.work.orders import WAIT_MAX_S

Outcome = Literal["open", "done", "failed"]
_DRAIN = "Progress of a drain; null: another kind of operation."


class ShownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a story."""

    at_s: Annotated[float, Meta(description="Time, in seconds since the epoch.")]
    kind: Annotated[str, Meta(description="Kind of event, such as spawn.failed.")]
    instance: Annotated[str | None, Meta(description="Uuid of the instance; null: several instances, or none.")]
    details: Annotated[dict[str, str], Meta(description="Details, by name.")] = msgspec.field(name="told")


class ShownOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An order to the agent of a host."""

    number: Annotated[int, Meta(description="Number of the order within the operation.")]
    host: Annotated[str, Meta(description="Name of the service, in lower case.")]
    action: Annotated[str, Meta(description="Action, such as spawn, destroy or power_off.")]
    state: Annotated[
        Literal["waiting", "taken", "answered", "withdrawn"], Meta(description="State; taken: delivered to the agent.")
    ]
    outcome: Annotated[str, Meta(description="Outcome in the agent's reply; empty: no reply yet.")]
    problem: Annotated[str, Meta(description="Problem in the agent's reply.")]


class ShownSubject(msgspec.Struct, frozen=True, kw_only=True):
    """An instance of an operation, in its current state."""

    uuid: Annotated[str, Meta(description="Uuid of the instance.")]
    name: Annotated[str, Meta(description="Name of the instance.")]
    status: Annotated[str, Meta(description="Status of the instance.")]
    host: Annotated[str, Meta(description="Name of its service; empty: it is on no host.")]
    fault: Annotated[str, Meta(description="Reason of the status ERROR, or of the failure of the last operation.")]
    operation: Annotated[str | None, Meta(description="Uuid of the sub-operation on this instance; null: none.")]


class DrainProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a drain."""

    host: Annotated[str, Meta(description="Name of the service that the drain empties.")]
    at_once: Annotated[int, Meta(description="Maximum number of instances that move at the same time.")]
    is_paused: Annotated[bool, Meta(description="Whether it is paused: no further moves start.")]
    instances: Annotated[int, Meta(description="Number of instances on the host at the start.")]
    left: Annotated[int, Meta(description="Number of instances that are yet to move.")]
    moving: Annotated[int, Meta(description="Number of instances that are moving.")]
    stayed: Annotated[int, Meta(description="Number of instances that could not move.")]


class PlanProgressMove(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one move of an applied plan."""

    number: Annotated[int, Meta(description="Number of the move in the plan.")]
    instance: Annotated[str, Meta(description="Uuid of the instance.")]
    source: Annotated[str, Meta(description="Service that the instance leaves.")]
    target: Annotated[str, Meta(description="Service of the target host; empty: the instance is offloaded.")]
    after: Annotated[tuple[int, ...], Meta(description="Numbers of the moves that must be done first.")]
    state: Annotated[MoveState, Meta(description="waiting, moving, done, failed or skipped.")]
    problem: Annotated[str, Meta(description="Reason why it failed or was skipped.")]


class PlanProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of an applied plan."""

    at_once: Annotated[int, Meta(description="Maximum number of instances that move at the same time.")]
    per_host: Annotated[int, Meta(description="Maximum number of concurrent moves to or from one host.")]
    per_group: Annotated[int, Meta(description="Maximum number of concurrent moves in one server group.")]
    deadline_at_s: Annotated[
        float, Meta(description="Time from which on no move begins, in seconds since the epoch; 0: no deadline.")
    ]
    windows: Annotated[tuple[str, ...], Meta(description="Windows of time in UTC in which moves begin; empty: always.")]
    opens_at_s: Annotated[
        float,
        Meta(description="Time of the next window, in seconds since the epoch; 0: moves may begin, or none is left."),
    ]
    moves: Annotated[list[PlanProgressMove], Meta(description="The moves, in order.")]


class ShownOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation and its progress."""

    uuid: Annotated[str, Meta(description="Uuid of the operation.")]
    kind: Annotated[Kind, Meta(description="Kind; a build has one spawn as sub-operation per instance.")]
    outcome: Annotated[
        Outcome, Meta(description="open: it or a sub-operation continues; failed: it or a sub-operation failed.")
    ]
    step: Annotated[str, Meta(description="The next step.")]
    problem: Annotated[str, Meta(description="Reason of a failure.")]
    is_cancelled: Annotated[bool, Meta(description="Whether it was cancelled.")]
    user_id: Annotated[str, Meta(description="User of the client that requested it; empty: a conductor.")]
    project_id: Annotated[str, Meta(description="Project of that client; empty: none.")]
    request_id: Annotated[str, Meta(description="Id of the request; empty: a conductor began it.")]
    created_at_s: Annotated[float, Meta(description="Time of the request, in seconds since the epoch.")]
    changed_at_s: Annotated[float, Meta(description="Time of the last step, in seconds since the epoch.")]
    instances: Annotated[list[ShownSubject], Meta(description="Its instances.")]
    orders: Annotated[list[ShownOrder], Meta(description="Its orders, without those of sub-operations.")]
    story: Annotated[
        list[ShownEvent], Meta(description="Its latest events, oldest first, without those of sub-operations.")
    ]
    drain: Annotated[DrainProgress | None, Meta(description=_DRAIN)]
    plan: Annotated[
        PlanProgress | None, Meta(description="Progress of an applied plan; null: another kind of operation.")
    ]


class OperationQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a wait for the end of an operation."""

    wait_s: Annotated[
        Annotated[float, Meta(ge=0, le=WAIT_MAX_S)],
        Meta(description="Maximum wait in seconds; the response arrives as soon as the operation ends."),
    ] = 0.0


class OperationsQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of operations, and their filters."""

    outcome: Annotated[Outcome | None, Meta(description="Only operations with this outcome of their own.")] = None
    kind: Annotated[Kind | None, Meta(description="Only operations of this kind.")] = None
    instance: Annotated[str, Meta(description="Only operations on the instance with this uuid.")] = ""
    recent: Annotated[
        bool, Meta(description="true: the operations that ended last, newest first, on one page without a cursor.")
    ] = False


class ListedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation in a list."""

    uuid: Annotated[str, Meta(description="Uuid of the operation.")]
    kind: Annotated[Kind, Meta(description="Kind; a build has one spawn as sub-operation per instance.")]
    outcome: Annotated[Outcome, Meta(description="Its own outcome; sub-operations have theirs.")]
    step: Annotated[str, Meta(description="The next step.")]
    problem: Annotated[str, Meta(description="Reason of a failure.")]
    is_cancelled: Annotated[bool, Meta(description="Whether it was cancelled.")]
    instance: Annotated[str | None, Meta(description="Uuid of its instance; null: several, or none.")]
    instance_name: Annotated[str, Meta(description="Name of its instance; empty: several, or none.")]
    parent: Annotated[str | None, Meta(description="Uuid of the operation of which it is a part; null: none.")]
    drain: Annotated[DrainProgress | None, Meta(description=_DRAIN)]
    created_at_s: Annotated[float, Meta(description="Time of the request, in seconds since the epoch.")]
    changed_at_s: Annotated[float, Meta(description="Time of the last step, in seconds since the epoch.")]


class OperationsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of operations, in order of their requests; with ``recent``, of their ends."""

    operations: list[ListedOperation]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]
