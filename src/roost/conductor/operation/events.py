"""Events: the observations that determine the next step of an operation."""

import enum
from dataclasses import dataclass
from typing import NamedTuple

from roost.model.work.orders import Answer


class Event(enum.Flag):
    """The observation of a step; the table of steps has a handler for each event."""

    STARTED = enum.auto()  # the step has not sent anything yet
    NOT_YET = enum.auto()  # the answer may still arrive
    DONE = enum.auto()  # the host carried out the order
    FAILED = enum.auto()  # the order failed; another host or attempt may succeed
    ABORTED = enum.auto()  # the order failed; no other host or attempt can succeed
    HOST_GONE = enum.auto()  # the agent of the host is gone, and has not answered
    TIMED_OUT = enum.auto()  # the agent is there, and has not answered within the limit
    HOST_BACK = enum.auto()  # an absent host has returned
    CANCELLED = enum.auto()  # by a deletion of the instance


# The host did not carry out the order, for any reason.
NOT_DONE = Event.FAILED | Event.ABORTED | Event.HOST_GONE | Event.TIMED_OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An event with its details.

    Args:
        event: exactly one.
        problem: reason of a failure; empty: none, or not known yet.
        answer: of the host, if any.
        until_s: for ``NOT_YET``, the time of the next check, in seconds since the epoch.
    """

    event: Event
    problem: str = ""
    answer: Answer | None = None
    until_s: float = 0.0


class Transition(NamedTuple):
    """One step of an operation: the step, its event, and the step after it."""

    kind: str
    step: str
    event: str  # the name of an event, or ``REFUSED``
    then: str


# The scheduler returned an error in place of a decision.
REFUSED = "REFUSED"
STARTED = Reply(event=Event.STARTED)
