"""Vectors: the known changes of a process, as the number of the last known change of each writer.

A writer numbers its changes 0, 1, 2, … and commits one at a time, so they become visible in this order on every
database. The last change of a writer closes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

NO_CHANGE = -1
_LETTER = "w"  # Texts of transaction snapshots, from earlier versions, begin with a digit.


class ChangeKey(NamedTuple):
    """A change in the feed."""

    writer: int
    seq: int
    is_last: bool = False  # whether it closes the writer


class NewWriter(NamedTuple):
    """A writer after the newest one of a vector."""

    writer: int
    previous: int  # the writer that registered before; 0: none


class Span(NamedTuple):
    """Some successive changes of one writer, or none."""

    writer: int
    after: int  # number before the first of them
    until: int | None  # number of the last one; None: the change that closes the writer


class Missing(NamedTuple):
    """The difference between two vectors."""

    spans: list[Span]
    # All changes of the writers ``high[0] < writer <= high[1]`` without a span are missing, too; all are closed.
    high: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Vector:
    """The known changes of a process."""

    high: int = 0  # the newest known writer; ids rise in the order of registration
    # Number of the last known change of each open writer, or ``NO_CHANGE``. All changes of other writers up to ``high``
    # are known.
    last: Mapping[int, int] = field(default_factory=dict)
    closed: Mapping[int, int] = field(default_factory=dict, compare=False)  # the same of recently closed writers

    @classmethod
    def from_rows(cls, high: int, rows: Iterable[tuple[int, int, bool]]) -> "Vector":
        """Return the vector of all changes in a database.

        Args:
            high: the newest writer.
            rows: the open writers and the last closed one: id, number of its last change, and whether it is closed.
        """
        last, closed = dict[int, int](), dict[int, int]()
        for writer, seq, is_closed in rows:
            if not is_closed:
                last[writer] = seq
            elif seq != NO_CHANGE:
                closed[writer] = seq
        return cls(high, last, closed)

    def last_of(self, writer: int) -> int | None:
        """Return the number of the last known change of an open writer; None: it is closed, or unknown."""
        return self.last.get(writer)

    def last_changes(self) -> list[tuple[int, int]]:
        """Return writers with the number of their last known change, to be looked for in the database."""
        return [*self.last.items(), *self.closed.items()]

    def contains(self, writer: int, seq: int) -> bool:
        """Return whether a change is known."""
        last = self.last.get(writer)
        return writer <= self.high if last is None else seq <= last

    def covers(self, other: "Vector") -> bool:
        """Return whether all changes of another vector are known."""
        if other.high > self.high:
            return False
        if any(writer <= other.high and writer not in other.last for writer in self.last):
            return False  # The writer is closed there, and open here.
        return all(seq == NO_CHANGE or self.contains(writer, seq) for writer, seq in other.last.items())

    def missing_in(self, base: "Vector") -> Missing:
        """Return the changes of this vector after an earlier one."""
        ends = {writer: self.last.get(writer) for writer in base.last}
        ends |= self.last
        spans = []
        for writer, until in sorted(ends.items()):
            after = base.last.get(writer, NO_CHANGE)
            if until is None or until > after or writer > base.high:
                spans.append(Span(writer, after, until))
        return Missing(spans, (base.high, self.high))

    def advance(self, keys: Sequence[ChangeKey], writers: Iterable[NewWriter] = ()) -> "Vector | None":
        """Return the vector with further changes.

        The last change of a closed writer stays in ``last_changes`` until later changes arrive. So if the database
        loses its newest changes, it also loses one of ``last_changes``.

        Args:
            keys: new changes, with rising numbers for each writer; known ones are ignored.
            writers: all new writers, in the order of registration.

        Returns:
            None: changes or writers are missing between the known ones and these.
        """
        high, last, closed = self.high, dict(self.last), self.closed
        for writer, previous in writers:
            if previous != high:
                return None
            high = writer
            last[writer] = NO_CHANGE
        known = Vector(high, dict(last))
        new = [key for key in keys if not known.contains(key.writer, key.seq)]
        if new:
            closed = {}
        for writer, seq, is_last in new:
            if last.get(writer) != seq - 1:
                return None
            if is_last:
                del last[writer]
                closed = {**closed, writer: seq}
            else:
                last[writer] = seq
        return Vector(high, last, closed)

    def is_in(self, found: Iterable[ChangeKey]) -> bool:
        """Return whether the last known change of each writer is among these changes."""
        keys = {(key.writer, key.seq): key.is_last for key in found}
        return all(
            seq == NO_CHANGE or keys.get((writer, seq)) is is_last
            for known, is_last in ((self.last, False), (self.closed, True))
            for writer, seq in known.items()
        )

    def to_text(self) -> str:
        """Return a short text: the newest writer, then each open writer, as the step from the one before it."""
        parts, before = [f"{_LETTER}{self.high:x}"], 0
        for writer, seq in sorted(self.last.items()):
            parts.append(f"{writer - before:x}.{seq + 1:x}")
            before = writer
        return ":".join(parts)

    @classmethod
    def from_text(cls, text: str) -> "Vector":
        """Return the vector of a text.

        Raises:
            ValueError: it is not the text of a vector.
        """
        head, *parts = text.split(":")
        if not is_vector_text(text):
            raise ValueError(f"not a vector: {text!r}")
        last, writer = dict[int, int](), 0
        for part in parts:
            step, _, count = part.partition(".")
            writer += int(step, 16)
            last[writer] = int(count, 16) - 1
        return cls(int(head[1:], 16), last)


def is_vector_text(text: str) -> bool:
    """Return whether a text is a vector, rather than a transaction snapshot of an earlier version."""
    return text.startswith(_LETTER)


class Found(NamedTuple):
    """The stored changes of one writer."""

    size: int
    first: int
    end: int  # number of the last one
    is_closed: bool


def is_whole(span: Span, found: Found | None) -> bool:
    """Return whether all changes of a span are stored."""
    if found is None:
        return span.until == span.after
    is_gapless = found.first == span.after + 1 and found.size == found.end - span.after
    return is_gapless and (found.is_closed if span.until is None else found.end == span.until and not found.is_closed)
