"""Events: what has become of the order that a step of an operation waits for."""

import enum
from dataclasses import dataclass
from typing import NamedTuple

from roost.model.work.orders import Answer


class Event(enum.Flag):
    """What a step finds when it looks. A table of steps names for each event what is done next."""

    STARTED = enum.auto()  # nothing was sent in this step yet
    NOT_YET = enum.auto()  # the answer may still come
    DONE = enum.auto()  # the host did what was ordered
    FAILED = enum.auto()  # the host could not; another host, or another try, may succeed
    ABORTED = enum.auto()  # the host could not, and neither would another host or another try
    HOST_GONE = enum.auto()  # the agent of the host is gone, and has not answered
    TIMED_OUT = enum.auto()  # the agent is there, and has not answered within the limit
    HOST_BACK = enum.auto()  # a host that was gone is there again
    CANCELLED = enum.auto()  # a deletion wants the instance


# The host did not do what was ordered, whatever the reason.
NOT_DONE = Event.FAILED | Event.ABORTED | Event.HOST_GONE | Event.TIMED_OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An event with its details.

    Args:
        event: exactly one.
        problem: why the order was not carried out; empty: it was, or that is not known yet.
        answer: of the host; None: there is none.
        until_s: of ``NOT_YET``: when to look again, in seconds since the epoch.
    """

    event: Event
    problem: str = ""
    answer: Answer | None = None
    until_s: float = 0.0


class Transition(NamedTuple):
    """One step of an operation: where it was, what it found, where it went."""

    kind: str
    step: str
    event: str  # the name of an event, or ``REFUSED``
    then: str


# The scheduler returned an error in place of a decision.
REFUSED = "REFUSED"
STARTED = Reply(event=Event.STARTED)
