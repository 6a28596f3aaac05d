"""Plans of requests: writes or acts prepared on the columns before their commit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.work.work_rows import ChangeRow, Put
from roost.model.writes import Write

Answer = TypeVar("Answer")
Deed = Request | NamedRequest | Departure  # the request or departure
Result = Decision | Exception | None  # the result of a deed; None for a departure


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[Answer]):
    """Writes that are committed all or nothing, and the answer after the commit.

    A plan is made on the current columns. If a commit refuses it, there was a concurrent change: the task runs again,
    sees the change, and plans again. So a plan never needs the reason of a refusal. Work is not in the columns: a
    refused change of work raises ``Conflict``, unless ``reads_work`` is set.
    """

    answer: Answer
    writes: tuple[Write, ...] = ()
    work: tuple[Put, ...] = ()  # committed with the writes
    trail: tuple[ChangeRow, ...] = ()  # the records of the client's change, committed with the writes
    reads_work: bool = False  # whether the task reads its work itself, and so can run again after a concurrent step
    # In place of ``writes`` if a provider or host is created: returns the writes for its new identity.
    create: Callable[[int], tuple[Write, ...]] | None = None
    creates: Literal["provider", "host"] = "provider"
    on_commit: Callable[[], None] | None = None  # called once the writes are durable

    @property
    def has_writes(self) -> bool:
        """Whether a commit of the plan writes to the database."""
        return bool(self.writes or self.work or self.trail or self.create)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act(Generic[Answer]):
    """A request or a departure that shares a commit with others, and the function from its result to the answer.

    The columns may change between plan and decision, so the decision repeats each check of the columns.
    """

    deed: Deed
    answer: Callable[[Result], Answer]  # called at most once; may raise
    # Called instead if the act has no result: it fails before its decision, or is planned again. It must not raise.
    on_drop: Callable[[], None] = lambda: None


class Again:
    """A request that waits for an act of the same group, and then runs again."""
