"""What a request wants to write, planned on the columns before anybody commits it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from roost.model.journal import Write

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[Answer]):
    """Writes that are committed together or not at all, and the answer once they are durable.

    A plan is made from the columns as they are. Where a commit refuses it, somebody was faster: then it is
    made anew, and whoever makes it sees what changed and decides what to say. So a plan never needs to know
    why it was refused.
    """

    answer: Answer
    writes: tuple[Write, ...] = ()
    # In place of ``writes`` where providers are created: makes them of a fresh identity.
    create: Callable[[int], tuple[Write, ...]] | None = None
