"""What an agent wants done: by whoever has the driver, and by whoever speaks to the server."""

from typing import Literal

import msgspec

from roost.model.work.orders import Order, OrderAnswer, Registration


class Look(msgspec.Struct, frozen=True):
    """Let the driver begin, if it has not, and see which nodes and guests there are."""


class Register(msgspec.Struct, frozen=True):
    """Tell the server that the agent lives."""

    registration: Registration


class Tell(msgspec.Struct, frozen=True):
    """Tell the server what became of an order."""

    order: Order
    answer: OrderAnswer


class Work(msgspec.Struct, frozen=True):
    """Do what is ordered."""

    order: Order
    is_again: bool = False  # It was begun in an earlier life of the agent, and may be done already.


class Undo(msgspec.Struct, frozen=True):
    """Let nothing be left of what an order brought about, since nobody wants it any more."""

    order: Order


class Clean(msgspec.Struct, frozen=True):
    """Do with a guest what the server said when the agent came."""

    instance: str
    action: Literal["destroy", "pause", "resume"]


Task = Look | Register | Tell | Work | Undo | Clean
