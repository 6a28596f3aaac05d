"""The known changes of a process, and their advance by the rows of a read."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from roost.model.writes import Change
from roost.store.rules.codec import decode_change
from roost.store.rules.feed.stale_state import ChangesLost
from roost.store.rules.vector import ChangeKey, NewWriter, Vector


class FeedRow(NamedTuple):
    """A row of a read: a change, or a new writer without changes."""

    previous: int | None  # of a new writer, the writer that registered before; None: the writer is known
    writer: int
    seq: int | None  # None: the row has no change
    position: int
    is_last: bool  # whether the change closes its writer
    body: bytes | None  # None: of the last known change of a writer


class KnownChanges:
    """The changes of the columns of a process.

    Args:
        vector: the changes read so far.
    """

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        self._text: str | None = None

    @property
    def text(self) -> str:
        """The vector as text."""
        if self._text is None:
            self._text = self._vector.to_text()
        return self._text

    @property
    def vector(self) -> Vector:
        """The changes read so far, and those of this process."""
        return self._vector

    def admit(self, writers: Sequence[NewWriter]) -> None:
        """Add new writers, whose changes are still unknown.

        Raises:
            ChangesLost: writers are missing before them.
        """
        self._set(self._vector.advance((), writers))

    def add(self, key: ChangeKey, position: int) -> None:
        """Add a change of this process.

        Args:
            position: of the change in the feed.
        """
        self._set(self._vector.advance([key]))

    def _set(self, vector: Vector | None) -> None:
        if vector is None:
            raise ChangesLost
        self._vector, self._text = vector, None

    def extend(self, rows: Iterable[FeedRow], *, high: int, is_compared: bool) -> list[Change] | None:
        """Advance by the rows of a read; return the changes of other processes in the order of their positions.

        Args:
            rows: by writer and number.
            high: the newest writer of the database.
            is_compared: whether the rows include the last known change of each writer.

        Returns:
            None: changes are missing, so everything must be read again.

        Raises:
            UnknownChange: everything must be read again, too.
        """
        found = list(rows)
        keys = [ChangeKey(row.writer, row.seq, bool(row.is_last)) for row in found if row.seq is not None]
        writers = dict.fromkeys(NewWriter(row.writer, row.previous) for row in found if row.previous is not None)
        if is_compared and not self._vector.is_in(keys):
            return None
        vector = self._vector.advance(keys, writers)
        if vector is None or vector.high != high:
            return None
        changes = [
            decode_change(row.position, row.body)
            for row in found
            if row.body and row.seq is not None and not self._vector.contains(row.writer, row.seq)
        ]
        changes.sort(key=lambda change: change.position)
        self._set(vector)
        return changes
