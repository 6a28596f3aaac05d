"""The tasks of an agent, for the threads that call the driver or the server."""

from typing import Literal

import msgspec

from roost.model.work.orders import Order, OrderAnswer, Registration


class Scan(msgspec.Struct, frozen=True):
    """Start the driver, if it has not started, and scan its nodes and guests."""


class Register(msgspec.Struct, frozen=True):
    """Register the agent with the server."""

    registration: Registration


class Reply(msgspec.Struct, frozen=True):
    """Send the answer to an order."""

    order: Order
    answer: OrderAnswer


class Work(msgspec.Struct, frozen=True):
    """Carry out an order."""

    order: Order
    is_resumed: bool = False  # An earlier process began it, and may have finished it.


class Undo(msgspec.Struct, frozen=True):
    """Undo the effects of a withdrawn or failed order."""

    order: Order


class Clean(msgspec.Struct, frozen=True):
    """Destroy, pause or resume a guest after a registration."""

    instance: str
    action: Literal["destroy", "pause", "resume"]


Task = Scan | Register | Reply | Work | Undo | Clean
