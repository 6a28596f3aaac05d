"""The changes that a decision saw, as stored with it."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from roost.ports import FeedMark
from roost.store.rules.vector import NO_CHANGE, Missing, Vector, is_vector_text


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


def find_base(
    heads: Iterable[tuple[int, str]], vector: Vector, are_stored: Callable[[Missing], bool]
) -> tuple[int, Vector] | None:
    """Return the newest snapshot with known changes only, if all changes since are stored.

    Args:
        heads: positions of all snapshots, newest first, each with its vector as text; more may follow after a blank.
        vector: the known changes.
        are_stored: returns whether the feed has all these changes.
    """
    for position, seen in heads:
        base = Vector.from_text(seen.split(" ")[0])
        if vector.covers(base):
            return (position, base) if are_stored(vector.missing_in(base)) else None
    return None


def find_mark(after: FeedMark, vector: Vector, are_stored: Callable[[Missing], bool]) -> Vector | None:
    """Return the changes of a mark; None: not all of them are known, or changes since were deleted.

    Args:
        after: the mark.
        vector, are_stored: as for ``find_base``.
    """
    if not is_vector_text(after.visible):
        return None
    mark = VisibleChanges.from_text(after.visible).vector
    return mark if vector.covers(mark) and are_stored(vector.missing_in(mark)) else None


def visible_text(vector_text: str, process: int, timeline: str) -> str:
    """Return ``Store.visible_changes``: the vector, the process, and the timeline.

    Args:
        vector_text: see ``Vector.to_text``.
        process: see ``OwnWriter``.
        timeline: of the server, without blanks.
    """
    return f"{vector_text} {process:x} {timeline}"
