"""A task of the deciding thread in progress, and the destination of its answer."""

import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from roost.placement.current import Current
from roost.placement.write_plan import Act, Again, Plan

Answer = TypeVar("Answer")
Taken_contra = TypeVar("Taken_contra", contravariant=True)
Task = Callable[[Current], Answer | Plan[Answer] | Act[Answer] | Again]


class Outcome(Protocol[Taken_contra]):
    """The destination of an answer: a ``concurrent.futures.Future`` or an object like it."""

    def set_running_or_notify_cancel(self) -> bool:
        """Return whether the client still waits for the answer."""

    def set_result(self, result: Taken_contra, /) -> None:
        """Accept the answer."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Accept an error instead."""


class Job(Generic[Answer]):
    """A task in progress."""

    __slots__ = ("act", "attempts", "is_answered", "outcome", "plan", "since_s", "slices", "task")

    def __init__(self, task: Task[Answer], outcome: Outcome[Answer]) -> None:
        self.task = task
        self.outcome = outcome
        self.plan: Plan[Answer] | None = None
        self.act: Act[Answer] | None = None
        self.attempts = 0
        self.slices = 0  # interruptions of its act, so that other tasks run
        self.is_answered = False
        self.since_s = time.monotonic()

    def take_act(self) -> Act[Answer] | None:
        """Return the act, and forget it, so that only one of ``answer`` and ``on_drop`` is called, once."""
        act, self.act = self.act, None
        return act

    def drop_act(self) -> None:
        """Forget the act, if there is one: it has no result."""
        act = self.take_act()
        if act is not None:
            act.on_drop()


def plan_of(job: Job[Answer]) -> Plan[Answer]:
    """Return the plan of a job that has one."""
    assert job.plan is not None, "its task returned no plan"
    return job.plan
