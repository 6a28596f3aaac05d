"""The composition of groups: the waiting tasks, and those expected within a moment; and the order of their plans."""

import queue
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from roost.model.writes import Claim, Release
from roost.placement.write_plan import Plan

Task = TypeVar("Task")
Task_co = TypeVar("Task_co", covariant=True)
# Maximum wait for the next expected task, and in total, s; a separate commit would take longer.
_NEXT_S, _TOTAL_S = 0.0004, 0.002


class Waiting(Protocol[Task_co]):
    """The methods of ``Arrivals`` that this module uses."""

    def get(self, timeout_s: float | None = None) -> Task_co:
        """Remove and return the first task."""

    def __len__(self) -> int: ...


class Gathering(Generic[Task]):
    """Takes tasks from a queue in groups.

    Args:
        waiting: the queue; a None in it is the end.
        size_max: maximum number of tasks in a group, >= 1.
    """

    def __init__(self, waiting: Waiting[Task | None], size_max: int) -> None:
        self._waiting, self.size_max = waiting, size_max
        self._last_size = 0

    def next(self, *, has_written: bool) -> list[Task | None]:
        """Wait for tasks, and return those to run together; a None at the end means that the queue has ended.

        With several writing clients, the clients of the last group are about to send their next requests. After a
        short wait, these requests share the commit of the waiting tasks. A single client never waits.

        Args:
            has_written: whether the last group committed.
        """
        expected = self._last_size + len(self._waiting) if has_written else 0
        group = [self._waiting.get()]
        until_s = monotonic() + _TOTAL_S
        try:
            while len(group) < self.size_max and group[-1] is not None:
                timeout_s = min(_NEXT_S, until_s - monotonic()) if len(group) < expected else 0.0
                group.append(self._waiting.get(timeout_s))
        except queue.Empty:
            pass
        self._last_size = len(group)
        return group


def split_phases(tasks: Sequence[Task], *, plan_of: Callable[[Task], Plan[Any]]) -> list[list[Task]]:
    """Separate plans into phases: other writes, claims, work, new providers, new hosts.

    The store writes many claims in few statements. Claims follow the other writes: those check generations, and claims
    raise generations without a check.
    """
    phases: tuple[list[Task], ...] = ([], [], [], [], [])
    for task in tasks:
        plan = plan_of(task)
        if plan.create is not None:
            assert not plan.work, "a plan that creates has no work"
            phases[3 if plan.creates == "provider" else 4].append(task)
        elif plan.work:
            phases[2].append(task)
        elif all(isinstance(write, Claim | Release) for write in plan.writes):
            phases[1].append(task)
        else:
            phases[0].append(task)
    return [phase for phase in phases if phase]
