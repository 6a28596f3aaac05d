"""The changes that a decision saw, as stored with it."""

from collections.abc import Iterable
from typing import NamedTuple

from roost.store.rules.vector import NO_CHANGE, Vector


class VisibleChanges(NamedTuple):
    """The parts of ``Store.visible_changes`` on a shared database."""

    vector: Vector
    process: int  # see ``OwnWriter``

    @classmethod
    def from_text(cls, text: str) -> "VisibleChanges":
        """Return the parts of a text."""
        vector, process, _ = text.split(" ")
        return cls(Vector.from_text(vector), int(process, 16))

    def last_own(self, writers: Iterable[int]) -> dict[int, int]:
        """Return the number of the last visible change of each writer, without the writers closed before.

        Args:
            writers: all writers of the process.
        """
        last = dict[int, int]()
        for writer in writers:
            known = self.vector.last_of(writer)
            if known is not None or writer > self.vector.high:
                last[writer] = NO_CHANGE if known is None else known
        return last


def visible_text(vector_text: str, process: int, timeline: str) -> str:
    """Return ``Store.visible_changes``: the vector, the process, and the timeline.

    Args:
        vector_text: see ``Vector.to_text``.
        process: see ``OwnWriter``.
        timeline: of the server, without blanks.
    """
    return f"{vector_text} {process:x} {timeline}"
