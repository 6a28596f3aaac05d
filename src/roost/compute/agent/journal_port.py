"""The interface of the journal that the state machine uses."""

from collections.abc import Sequence
from typing import Protocol

from roost.compute.agent.agent_journal import Entry, Key, Mark
from roost.model.work.orders import Order, OrderAnswer


class OrderMemory(Protocol):
    """The part of a journal that the state machine uses."""

    def entries(self) -> list[Entry]: ...  # noqa: D102  # all documented in ``Journal``
    def entry(self, key: Key) -> Entry | None: ...  # noqa: D102
    def mark(self, instance: str) -> Mark: ...  # noqa: D102
    def begin(self, orders: Sequence[Order]) -> None: ...  # noqa: D102
    def finish(self, order: Order, answer: OrderAnswer) -> None: ...  # noqa: D102
    def take(self, key: Key) -> None: ...  # noqa: D102
    def forget(self, key: Key) -> None: ...  # noqa: D102
    def list_paused(self) -> frozenset[str]: ...  # noqa: D102
    def holders(self) -> frozenset[str]: ...  # noqa: D102
