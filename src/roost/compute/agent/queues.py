"""Open orders between an agent and its server, and lanes: the queues of work, one per instance."""

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from roost.compute.agent.agent_journal import Key, Mark
from roost.compute.agent.tasks import Clean, Task, Undo, Work
from roost.model.work.guest import GuestReport
from roost.model.work.orders import (
    AbortMigration,
    Destroy,
    Discard,
    Finish,
    Inspect,
    Order,
    OrderAnswer,
    Prepare,
    Rebuild,
    Settle,
    Spawn,
)

# The answers to these stay valid after later orders: the server checks the guest before it relies on them.
_LASTING = (AbortMigration, Destroy, Discard, Prepare, Rebuild, Settle, Spawn)


@dataclass(slots=True)
class OpenOrder:
    """An order that is not settled between agent and server yet."""

    order: Order
    is_resumed: bool = False  # begun by an earlier process
    is_unwanted: bool = False  # withdrawn during its execution
    is_settled: bool = False  # the server stopped waiting for it during its execution
    answer: OrderAnswer | None = None  # None: it waits, or is under way
    begun_at_s: float | None = None  # None: it waits
    is_being_sent: bool = False
    refusals: int = 0  # failed deliveries of the answer

    @property
    def mark(self) -> Mark:
        """Its turn and number."""
        return self.order.turn, self.order.number


@dataclass(slots=True)
class Lane:
    """The queue of work on one instance, one item at a time; only the abort of a move runs beside the move."""

    cleans: list[Clean] = field(default_factory=list)
    undos: list[Undo] = field(default_factory=list)
    undo_at_s: float = 0.0  # time of the next undo after a failed one; orders may begin before that
    waiting: list[OpenOrder] = field(default_factory=list)
    current: Task | None = None

    @property
    def new_guest(self) -> GuestReport | None:
        """The guest that the present work may create."""
        return new_guest_of(self.current.order) if isinstance(self.current, Work) else None

    def undoes(self, order: Order) -> bool:
        """Return whether an order is being undone, or will be."""
        return Undo(order) in (*self.undos, self.current)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits or is under way."""
        return not (self.cleans or self.undos or self.waiting or self.current)


def is_cleaning(lane: Lane) -> bool:
    """Return whether a ``Clean`` task of the lane is waiting or under way."""
    return bool(lane.cleans) or isinstance(lane.current, Clean)


def is_building(order: Order) -> bool:
    """Return whether an order creates a guest or a part of one."""
    return isinstance(order.act, (Spawn, Prepare, Finish))


def may_be_left(order: Order, answer: OrderAnswer) -> bool:
    """Return whether an order to build or discard a guest has failed, and may have left the guest."""
    may_fail_partly = isinstance(order.act, Discard) or (is_building(order) and answer.found is not None)
    return may_fail_partly and answer.outcome in ("failed", "aborted")


def stale_answer(order: Order, mark: Mark, *, run: str) -> OrderAnswer:
    """Return the answer to an order that a later one of its instance has overtaken.

    Args:
        mark: the highest one of the orders that the agent has begun for the instance.
        run: of the agent.
    """
    problem = f"a later order of instance {lane_of(order)} arrived before it"
    return OrderAnswer(run=run, outcome="stale", problem=problem, turn=max(mark[0], 0))


def answer_again(order: Order, answer: OrderAnswer, mark: Mark, *, run: str) -> OrderAnswer:
    """Return the answer to an order that the server delivers again, although it had the answer.

    The database was restored from a backup. If the agent has begun later orders for the instance, its guest may have
    changed or moved since, so most answers no longer count.

    Args:
        answer: the earlier one.
        mark, run: as for ``stale_answer``.
    """
    is_outdated = not isinstance(order.act, _LASTING) and (order.turn, order.number) < mark
    return stale_answer(order, mark, run=run) if is_outdated else answer


def answer_after_undo(order: Order, answer: OrderAnswer) -> OrderAnswer:
    """Return the answer to a failed order whose effects are undone."""
    if isinstance(order.act, Discard):
        return OrderAnswer(run=answer.run, outcome="ok")
    return msgspec.structs.replace(answer, found=None)


def new_guest_of(order: Order) -> GuestReport | None:
    """Return the guest that an order may create; None: it creates none."""
    if not isinstance(order.act, (Spawn, Prepare, Finish)):
        return None
    guest = order.act.guest
    return GuestReport(
        uuid=guest.uuid,
        node=guest.node,
        operation=order.operation,
        state="building" if isinstance(order.act, Spawn) else "prepared",
    )


def _undo_affects(earlier: Order, order: Order) -> bool:
    """Return whether undoing an earlier order would also undo the work of a later one."""
    if isinstance(earlier.act, Spawn) and isinstance(order.act, Prepare):
        return True
    mark = (isinstance(earlier.act, Discard) and earlier.act.of) or earlier.operation
    may_remove = isinstance(earlier.act, Discard) or is_building(earlier)
    return may_remove and is_building(order) and mark == order.operation


def key_of(order: Order) -> Key:
    """Return the key that identifies an order."""
    return order.operation, order.number


def lane_of(order: Order) -> str:
    """Return the name of an order's lane: the instance, or without an instance a name of its own."""
    return order.instance or f"{order.operation} {order.number}"


def refusal(order: Order, lane: Lane, *, hung: Collection[Order], host: str) -> str:
    """Return the reason to refuse an order now; empty if it may begin.

    Args:
        hung: orders whose driver calls hang.
        host: name of the service.
    """
    if hung and isinstance(order.act, (Spawn, Prepare)):
        return f"the driver on host {host} hangs in {order_name(next(iter(hung)))}"
    # The pending undo would destroy the guest of this order after its inspection or its build.
    if lane.undos and (isinstance(order.act, Inspect) or any(_undo_affects(each.order, order) for each in lane.undos)):
        return f"host {host} could not undo {order_name(lane.undos[0].order)} yet"
    return ""


def order_name(order: Order) -> str:
    """Return the name of an order in messages."""
    kind = type(order.act).__struct_config__.tag
    return f"{kind} of instance {order.instance}" if order.instance else f"{kind}"
