"""What a request wants to write or to be decided, planned on the columns before anybody commits it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.request import Request
from roost.model.work.work_rows import Put
from roost.model.writes import Write

Answer = TypeVar("Answer")
Deed = Request | NamedRequest | Departure  # what is decided or done
Result = Decision | Exception | None  # what comes of one; None: of a departure


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[Answer]):
    """Writes that are committed together or not at all, and the answer once they are durable.

    A plan is made from the columns as they are. Where a commit refuses it, somebody was faster: then it is
    made anew, and whoever makes it sees what changed and decides what to say. So a plan never needs to know
    why it was refused. Only work is not in the columns: a step of it that was taken already ends in ``Conflict``,
    unless the plan says that whoever makes it anew reads its work again.
    """

    answer: Answer
    writes: tuple[Write, ...] = ()
    work: tuple[Put, ...] = ()  # committed with the writes
    reads_work: bool = False  # whether its work is read in the task, so that it is made anew where others went on
    # In place of ``writes`` where a provider or a host is created: makes them of a fresh identity.
    create: Callable[[int], tuple[Write, ...]] | None = None
    creates: Literal["provider", "host"] = "provider"
    told: Callable[[], None] | None = None  # is called once the writes are durable


@dataclass(frozen=True, slots=True, kw_only=True)
class Act(Generic[Answer]):
    """A request or a departure, done in one commit with those of others, and the answer to what comes of it.

    What it was planned from may be other columns than those on which it is decided: all that depends on them is
    looked at there again.
    """

    deed: Deed
    answer: Callable[[Result], Answer]  # is called once, whatever happens; may raise


class Again:
    """What waits for an act of the same group, and is to be asked once more when that is done."""
