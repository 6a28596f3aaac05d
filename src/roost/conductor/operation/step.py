"""Steps of operations: the view of an operation, and the commit of its next step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from roost.conductor.operation.events import STARTED, Reply, Transition
from roost.conductor.operation.liveness import is_gone
from roost.conductor.operation.row_changes import make_due, next_version, replace_row
from roost.conductor.operation.story import line
from roost.errors import report_corruption
from roost.model.devices.pci import PciRequest
from roost.model.evidence.decision import Decision, Pick
from roost.model.fleet import NamedRequest
from roost.model.names import uuid_text
from roost.model.request import Request
from roost.model.work.change_memory import Drain, InstanceRebuild, PlanApplication, Shelve, Unshelve
from roost.model.work.operation import (
    Build,
    Delete,
    HostCleanup,
    InstanceBuild,
    InstanceMove,
    MoveSettlement,
    PowerChange,
)
from roost.model.work.orders import Action, Answer, OrderBody
from roost.model.work.work_rows import NEVER_S, AgentRow, MigrationRow, OperationRow, OrderRow, Put, StatusRow
from roost.model.writes import Write
from roost.ports import Commits

Body = (
    Build
    | InstanceBuild
    | Delete
    | PowerChange
    | InstanceMove
    | MoveSettlement
    | HostCleanup
    | InstanceRebuild
    | Shelve
    | Unshelve
    | Drain
    | PlanApplication
)
B = TypeVar("B", bound=Body)

# The step in which an operation requests a decision.
CHOOSE = "choose"
# The state of orders without an answer.
_OPEN = frozenset({"waiting", "taken"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Limits of operations, from the settings."""

    attempts_max: int  # hosts tried per instance
    build_timeout_s: float  # time limit of a build, seconds
    act_timeout_s: float  # time limit of any other order, seconds
    owner_s: float  # seconds of ownership of an operation by a conductor
    # Seconds until a shelved instance leaves its host; 0: at once, below 0: never.
    shelved_offload_time_s: float = 0.0
    parts_check_s: float = 1.0  # seconds between checks of an operation's parts
    failed_builds_max: int = 0  # failures in a row until a service is disabled; 0: never


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The rows needed to find the next step of an operation."""

    operation: OperationRow
    orders: Sequence[OrderRow] = ()  # by number
    statuses: Mapping[bytes, StatusRow] = field(default_factory=dict)  # of its instances, by uuid
    migrations: Sequence[MigrationRow] = ()  # of these instances
    agents: Mapping[str, AgentRow] = field(default_factory=dict)  # by host
    waiting: OperationRow | None = None  # the deletion that waits for the end of this operation
    parts: Sequence[OperationRow] = ()  # its child operations, such as the moves of a drain
    holder: OperationRow | None = None  # the other operation with the lock of the instance
    now_s: float
    restored_at_s: float = 0.0  # time of the last restore of the database; 0: there was none
    terms: Terms
    reply: Reply = STARTED  # the event of the step

    @property
    def status(self) -> StatusRow:
        """The status of the only instance."""
        (found,) = self.statuses.values()
        return found

    @property
    def is_from_backup(self) -> bool:
        """Whether the operation is from a restored backup: its hosts may have later orders than the database knows."""
        return self.operation.created_at_s < self.restored_at_s

    def agent(self, host: str) -> AgentRow | None:
        """Return the agent of a host; None: none has registered."""
        return self.agents.get(host.lower())

    def is_away(self, host: str) -> bool:
        """Return whether the agent of a host is absent."""
        return is_gone(self.agent(host))


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The functions for a step, in the deciding thread."""

    current: Commits
    decision: Callable[[str], Decision]  # loads a stored decision; raises NotFound
    devices: Callable[[Request], tuple[PciRequest, ...]]  # the PCI requests of a request
    document: Callable[[int], bytes | None]  # loads a document by its number


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The next step, as one commit."""

    operation: OperationRow  # its next version
    writes: tuple[Write, ...] = ()
    work: tuple[Put, ...] = ()
    # Builds that ended with this step, and whether each failed: counted on their hosts afterwards.
    builds: tuple[tuple[Pick, bool], ...] = ()
    transition: Transition | None = None  # of this step


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """The next step: choose and claim hosts, in one commit with the operation."""

    operation: OperationRow  # its next version
    request: Request
    decision_uuid: str
    work: tuple[Put, ...] = ()  # rows besides the operation
    transition: Transition | None = None  # of this step

    @property
    def scheduler_request(self) -> NamedRequest:
        """The request to the scheduler."""
        return NamedRequest(
            request=self.request, decision_uuid=self.decision_uuid, work=(replace_row(self.operation), *self.work)
        )


Step = Commit | Choose


def body_of(operation: OperationRow, kind: type[B]) -> B:
    """Return the body of an operation.

    Raises:
        StoreBroken: it cannot be decoded.
    """
    with report_corruption(f"operation {operation.id}"):
        return msgspec.msgpack.decode(operation.body, type=kind)


def advance(view: View, step: str, *, body: Body | None = None) -> OperationRow:
    """Return the operation at its next step, due at once."""
    return _at(view, step=step, body=body)


def wait_until(view: View, until_s: float, *, step: str | None = None, body: Body | None = None) -> OperationRow:
    """Return the operation without an owner, due at a time, or when an answer arrives."""
    return _at(
        view, body=body, step=step or view.operation.step, due_at_s=min(until_s, NEVER_S), owner="", owned_until_s=0.0
    )


def end(view: View, *, body: Body, problem: str = "") -> OperationRow:
    """Return the operation at its end.

    Args:
        problem: why it failed; empty: it succeeded.
    """
    return _at(
        view,
        body=msgspec.structs.replace(body, problem=problem),
        step="end",
        due_at_s=NEVER_S,
        owner="",
        owned_until_s=0.0,
        outcome="failed" if problem else "done",
    )


def _at(view: View, *, body: Body | None, **changes: object) -> OperationRow:
    encoded = view.operation.body if body is None else msgspec.msgpack.encode(body)
    return next_version(view.operation, body=encoded, changed_at_s=view.now_s, **changes)


def release_lock(view: View, **changes: object) -> tuple[Put, ...]:
    """Return the rows to release the lock of the operation on its only instance.

    If a deletion waits for the instance, it gets the lock now.
    """
    deletion, now_s = view.waiting, view.now_s
    if deletion is None:
        return (
            replace_row(next_version(view.status, **{"task": "", "operation_id": 0, "changed_at_s": now_s, **changes})),
        )
    status = next_version(
        view.status, **{"changed_at_s": now_s, **changes, "task": "deleting", "operation_id": deletion.id}
    )
    row = msgspec.structs.replace(make_due(deletion, now_s=now_s), step="send", turn=status.version)
    return replace_row(status), replace_row(row)


def new_order(
    view: View,
    desk: Desk,
    host: str,
    *,
    action: Action,
    body: OrderBody,
    ahead: int = 0,
    operation: OperationRow | None = None,
) -> OrderRow:
    """Return a new order to the agent of a host.

    Args:
        ahead: number of new orders of the operation before this one in the same commit.
        operation: None: the one in view.
    """
    of = operation or view.operation
    last = 0 if operation is not None else max((order.number for order in view.orders), default=0)
    return OrderRow(
        id=desk.current.new_id("order"),
        operation_id=of.id,
        number=last + 1 + ahead,
        host=host.lower(),
        instance_uuid=of.instance_uuid,
        turn=_turn_of(view, of),
        action=action,
        body=msgspec.json.encode(body),
    )


def _turn_of(view: View, operation: OperationRow) -> int:
    """Return the turn of a new order.

    A host may have carried out later orders than a restored database knows. Its answer ``stale`` has raised the version
    of the status, so that further orders come after these.
    """
    status = view.statuses.get(operation.instance_uuid or b"") if view.restored_at_s else None
    return operation.turn if status is None else max(operation.turn, status.version)


def simple_order(view: View, *, limit_s: float = 0.0) -> OrderBody:
    """Return the body of an order without details."""
    return OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s)


def withdraw_orders(orders: Sequence[OrderRow]) -> tuple[Put, ...]:
    """Withdraw the orders without an answer."""
    return tuple(replace_row(next_version(order, state="withdrawn")) for order in orders if is_open(order))


def is_open(order: OrderRow) -> bool:
    """Return whether an order has no answer yet."""
    return order.state in _OPEN


def answer_of(order: OrderRow) -> Answer:
    """Return the answer to an answered order."""
    with report_corruption(f"the answer to order {order.id}"):
        return msgspec.json.decode(order.answer, type=Answer)


def order_limit_s(order: OrderRow) -> float:
    """Return the time limit of an order, in seconds."""
    with report_corruption(f"order {order.id}"):
        return msgspec.json.decode(order.body, type=OrderBody).limit_s


def story_line(view: View, desk: Desk, kind: str, *, instance_uuid: bytes | None = None, **words: str) -> Put:
    """Return a line of the story of the operation, and of its instance."""
    return line(
        desk.current,
        kind,
        now_s=view.now_s,
        instance_uuid=instance_uuid or view.operation.instance_uuid,
        operation_id=view.operation.id,
        **words,
    )
