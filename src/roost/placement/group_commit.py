"""Which tasks are done together: those that wait, and those that will in a moment."""

import queue
from time import monotonic
from typing import Generic, Protocol, TypeVar

Task = TypeVar("Task")
Task_co = TypeVar("Task_co", covariant=True)
# So long a group waits for the next of those it expects, and so long in all: a commit of its own takes longer.
_NEXT_S, _GATHERED_S = 0.0004, 0.002


class Waiting(Protocol[Task_co]):
    """The part of ``Arrivals`` that is needed."""

    def get(self, at_most_s: float | None = None) -> Task_co:
        """Take the first task."""

    def __len__(self) -> int: ...


class Gathering(Generic[Task]):
    """Takes tasks from a queue in groups.

    Args:
        waiting: None in it is the end.
        most: tasks in a group, >= 1.
    """

    def __init__(self, waiting: Waiting[Task | None], most: int) -> None:
        self._waiting, self._most = waiting, most
        self._last_size = 0

    def next(self, *, has_written: bool) -> list[Task | None]:
        """Wait for something to do, and return all that is to be done together; the end is the last of it.

        Where several clients write, those whom the last group answered are about to ask again, and share a commit with
        those who wait already if they are given a moment. Whoever asks alone never waits.

        Args:
            has_written: whether the last group was answered with a commit.
        """
        expected = self._last_size + len(self._waiting) if has_written else 0
        group = [self._waiting.get()]
        until_s = monotonic() + _GATHERED_S
        try:
            while len(group) < self._most and group[-1] is not None:
                patience_s = min(_NEXT_S, until_s - monotonic()) if len(group) < expected else 0.0
                group.append(self._waiting.get(patience_s))
        except queue.Empty:
            pass
        self._last_size = len(group)
        return group
