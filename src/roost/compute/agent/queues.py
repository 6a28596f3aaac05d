"""Orders that are open between an agent and its server, and the lane of each instance, in which they wait."""

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from roost.compute.agent.agent_journal import Key, Mark
from roost.compute.agent.tasks import Clean, Task, Undo, Work
from roost.model.work.guest import Found
from roost.model.work.orders import Discard, Finish, Inspect, Order, OrderAnswer, Prepare, Spawn


@dataclass(slots=True)
class OpenOrder:
    """An order that is not settled between agent and server."""

    order: Order
    is_again: bool = False  # begun in an earlier life
    is_unwanted: bool = False  # withdrawn while it was worked on
    is_settled: bool = False  # so that nobody waits for an answer, while it was worked on
    answer: OrderAnswer | None = None  # None: it waits, or is worked on
    begun_at_s: float | None = None  # None: it waits
    is_being_told: bool = False
    refusals: int = 0  # how often the server could not take the answer

    @property
    def mark(self) -> Mark:
        """Its turn and number."""
        return self.order.turn, self.order.number


@dataclass(slots=True)
class Lane:
    """All that concerns one instance, done one by one; only the abort of a move passes the move."""

    cleans: list[Clean] = field(default_factory=list)
    undos: list[Undo] = field(default_factory=list)
    undo_at_s: float = 0.0  # not before, since the last one failed; meanwhile orders go on
    waiting: list[OpenOrder] = field(default_factory=list)
    current: Task | None = None

    @property
    def coming(self) -> Found | None:
        """What may be made of its guest right now."""
        return coming_of(self.current.order) if isinstance(self.current, Work) else None

    def undoes(self, order: Order) -> bool:
        """Say whether an order is undone, or is to be."""
        return Undo(order) in (*self.undos, self.current)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits in it or is done."""
        return not (self.cleans or self.undos or self.waiting or self.current)


def is_cleaning(lane: Lane) -> bool:
    """Say whether the server's word on its guest is not carried out yet."""
    return bool(lane.cleans) or isinstance(lane.current, Clean)


def is_building(order: Order) -> bool:
    """Say whether an order makes something of a guest that was not there before."""
    return isinstance(order.act, (Spawn, Prepare, Finish))


def may_be_left(order: Order, answer: OrderAnswer) -> bool:
    """Say whether an order that went wrong may have left what nobody wants: what it built, or was to discard."""
    is_one = isinstance(order.act, Discard) or (is_building(order) and answer.found is not None)
    return is_one and answer.outcome in ("failed", "aborted")


def undone(order: Order, answer: OrderAnswer) -> OrderAnswer:
    """Return the answer to an order that went wrong, of which nothing is left by now."""
    if isinstance(order.act, Discard):
        return OrderAnswer(run=answer.run, outcome="ok")
    return msgspec.structs.replace(answer, found=None)


def coming_of(order: Order) -> Found | None:
    """Return what there may be of a guest that an order makes something of; None: it makes nothing of any."""
    if not isinstance(order.act, (Spawn, Prepare, Finish)):
        return None
    guest = order.act.guest
    return Found(
        uuid=guest.uuid,
        node=guest.node,
        operation=order.operation,
        state="building" if isinstance(order.act, Spawn) else "prepared",
    )


def _is_to_undo(earlier: Order, order: Order) -> bool:
    """Say whether what undoes an earlier order would undo what another one builds, or takes for the guest itself."""
    if isinstance(earlier.act, Spawn) and isinstance(order.act, Prepare):
        return True
    mark = (isinstance(earlier.act, Discard) and earlier.act.of) or earlier.operation
    may_go = isinstance(earlier.act, Discard) or is_building(earlier)
    return may_go and is_building(order) and mark == order.operation


def key_of(order: Order) -> Key:
    """Return by what an order is known as the same."""
    return order.operation, order.number


def lane_of(order: Order) -> str:
    """Return the name of the lane of an order: its instance, or its own."""
    return order.instance or f"{order.operation} {order.number}"


def refusal(order: Order, lane: Lane, *, hung: Collection[Order], host: str) -> str:
    """Say why an order is not begun, though its turn has come; empty: nothing is against it.

    Args:
        hung: orders in which the driver hangs.
        host: name of the service.
    """
    if hung and isinstance(order.act, (Spawn, Prepare)):
        return f"the driver on host {host} hangs in {told(next(iter(hung)))}"
    # Whoever asks would count on a guest that is destroyed a moment later, and so would go what is built anew.
    if lane.undos and (isinstance(order.act, Inspect) or any(_is_to_undo(each.order, order) for each in lane.undos)):
        return f"host {host} could not undo {told(lane.undos[0].order)} yet, which nobody wants"
    return ""


def told(order: Order) -> str:
    """Return how a sentence names an order."""
    what = type(order.act).__struct_config__.tag
    return f"{what} of instance {order.instance}" if order.instance else f"{what}"
