"""A step of an operation: from what is true to what is committed next. What all kinds of operations share."""

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
from roost.model.work.change_memory import Drain, Rebuilding, Shelve, Unshelve
from roost.model.work.operation import Build, Cleaning, Delete, Moving, Powering, Settling, Spawning
from roost.model.work.orders import Action, Answer, OrderBody
from roost.model.work.work_rows import NEVER_S, AgentRow, MigrationRow, OperationRow, OrderRow, Put, StatusRow
from roost.model.writes import Write
from roost.ports import Commits

Body = Build | Spawning | Delete | Powering | Moving | Settling | Cleaning | Rebuilding | Shelve | Unshelve | Drain
B = TypeVar("B", bound=Body)

# The step in which an operation of any kind asks for a decision.
CHOOSE = "choose"
# Of orders that nobody has answered yet.
_OPEN = frozenset({"waiting", "taken"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the settings say about operations."""

    attempts_max: int  # hosts that an instance may be tried on
    build_timeout_s: float  # so long a host may build
    act_timeout_s: float  # so long a host may take for anything else
    owner_s: float  # so long nobody else works on an operation that somebody took
    # An instance that is shelved leaves its host after so many seconds; 0: at once, below 0: never.
    shelved_offload_time_s: float = 0.0
    look_s: float = 1.0  # after so many an operation that waits for its parts looks at them again
    failed_builds_max: int = 0  # after so many in a row a service is disabled; 0: never


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is known of an operation when its next step is looked for."""

    operation: OperationRow
    orders: Sequence[OrderRow] = ()  # by number
    statuses: Mapping[bytes, StatusRow] = field(default_factory=dict)  # of its instances, by uuid
    migrations: Sequence[MigrationRow] = ()  # of these
    agents: Mapping[str, AgentRow] = field(default_factory=dict)  # by host
    waiting: OperationRow | None = None  # the deletion that waits until this one ends
    parts: Sequence[OperationRow] = ()  # that the operation consists of, if it waits for them
    holder: OperationRow | None = None  # who works on the instance, if it is another one
    now_s: float
    terms: Terms
    reply: Reply = STARTED  # what the step found

    @property
    def status(self) -> StatusRow:
        """The status of the only instance."""
        (found,) = self.statuses.values()
        return found

    def agent(self, host: str) -> AgentRow | None:
        """Return the agent of a host; None: none ever registered."""
        return self.agents.get(host.lower())

    def is_away(self, host: str) -> bool:
        """Say whether nothing is to be expected of the agent of a host."""
        return is_gone(self.agent(host))


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a step works with beside what it knows, in the thread that owns the columns."""

    current: Commits
    decision: Callable[[str], Decision]  # a stored one; raises NotFound
    devices: Callable[[Request], tuple[PciRequest, ...]]  # that a request wants
    document: Callable[[int], bytes | None]  # a stored one by its number


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The next step: all of it is committed, or nothing."""

    operation: OperationRow  # as it is afterwards
    writes: tuple[Write, ...] = ()
    work: tuple[Put, ...] = ()
    # Builds that ended with it, each with whether it failed: counted on their hosts afterwards, which is a hint.
    builds: tuple[tuple[Pick, bool], ...] = ()
    transition: Transition | None = None  # that this step is


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """The next step: hosts are chosen and claimed, in one commit with the operation."""

    operation: OperationRow  # as it is afterwards
    request: Request
    decision_uuid: str
    work: tuple[Put, ...] = ()  # beside the operation
    transition: Transition | None = None  # that this step is

    @property
    def deed(self) -> NamedRequest:
        """What the scheduler is asked."""
        return NamedRequest(
            request=self.request, decision_uuid=self.decision_uuid, work=(replace_row(self.operation), *self.work)
        )


Step = Commit | Choose


def body_of(operation: OperationRow, kind: type[B]) -> B:
    """Return what an operation remembers.

    Raises:
        StoreBroken: it cannot be understood.
    """
    with report_corruption(f"operation {operation.id}"):
        return msgspec.msgpack.decode(operation.body, type=kind)


def advance(view: View, step: str, *, body: Body | None = None) -> OperationRow:
    """Return the operation at its next step, which comes at once."""
    return _at(view, step=step, body=body)


def wait_until(view: View, until_s: float, *, step: str | None = None, body: Body | None = None) -> OperationRow:
    """Return the operation as it waits: nobody owns it, and it is due then, or when an answer comes."""
    return _at(
        view, body=body, step=step or view.operation.step, due_at_s=min(until_s, NEVER_S), owner="", owned_until_s=0.0
    )


def end(view: View, *, body: Body, problem: str = "") -> OperationRow:
    """Return the operation at its end, with what went wrong."""
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
    told = view.operation.body if body is None else msgspec.msgpack.encode(body)
    return next_version(view.operation, body=told, changed_at_s=view.now_s, **changes)


def release_lock(view: View, **changes: object) -> tuple[Put, ...]:
    """Return the status of the only instance as the operation leaves it.

    Nobody works on it any more, or the deletion that waits for this does from now on.
    """
    heir, now_s = view.waiting, view.now_s
    if heir is None:
        return (
            replace_row(next_version(view.status, **{"task": "", "operation_id": 0, "changed_at_s": now_s, **changes})),
        )
    status = next_version(
        view.status, **{"changed_at_s": now_s, **changes, "task": "deleting", "operation_id": heir.id}
    )
    row = msgspec.structs.replace(make_due(heir, now_s=now_s), step="send", turn=status.version)
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
        ahead: how many new orders of the same operation come before it in the same commit.
        operation: that it is one of; None: the one in view.
    """
    of = operation or view.operation
    last = 0 if operation is not None else max((order.number for order in view.orders), default=0)
    return OrderRow(
        id=desk.current.new_id("order"),
        operation_id=of.id,
        number=last + 1 + ahead,
        host=host.lower(),
        instance_uuid=of.instance_uuid,
        turn=of.turn,
        action=action,
        body=msgspec.json.encode(body),
    )


def simple_order(view: View, *, limit_s: float = 0.0) -> OrderBody:
    """Return what is said with an order whose action says all."""
    return OrderBody(operation=uuid_text(view.operation.uuid), limit_s=limit_s)


def withdraw_orders(orders: Sequence[OrderRow]) -> tuple[Put, ...]:
    """Return those of some orders that nobody answered, as orders that nobody is to answer any more."""
    return tuple(replace_row(next_version(order, state="withdrawn")) for order in orders if is_open(order))


def is_open(order: OrderRow) -> bool:
    """Say whether an answer to an order may still come."""
    return order.state in _OPEN


def answer_of(order: OrderRow) -> Answer:
    """Return the answer to an order that was answered."""
    with report_corruption(f"the answer to order {order.id}"):
        return msgspec.json.decode(order.answer, type=Answer)


def order_limit_s(order: OrderRow) -> float:
    """Return how long a host may take for an order, in seconds."""
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
