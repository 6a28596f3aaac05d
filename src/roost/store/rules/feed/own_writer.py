"""The writer of a process: the numbers of its changes."""

from typing import Generic, Protocol, TypeVar

from roost.store.rules.feed.known_changes import KnownChanges
from roost.store.rules.feed.stale_state import ChangesLost
from roost.store.rules.vector import NO_CHANGE, ChangeKey, NewWriter, Vector

C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)


class WriterTable(Protocol[C_contra]):
    """The writers of a database, on a connection without a transaction."""

    def register(
        self, connection: C_contra, process: int, *, abandoned: int | None = None, high: int | None = None
    ) -> tuple[int, list[NewWriter]]:
        """Register a writer in a transaction of its own.

        Args:
            connection: without a transaction.
            process: a number of the process, also in its decisions.
            abandoned: an earlier writer of the process to close; none of its connections exists.
            high: the newest known writer.

        Returns:
            Its id, and all writers after ``high``.
        """

    def can_continue(self, connection: C_contra, writer: int, last: int) -> bool:
        """Return whether a writer is still open.

        Args:
            connection: without a transaction.
            writer: the id.
            last: number of its last change, or ``NO_CHANGE``.

        Raises:
            ChangesLost: the database does not have this change.
        """


class OwnWriter(Generic[C]):
    """The writer of one store. It registers before its first commit, so a reader has none.

    Args:
        process: a number of the store, also in its decisions.
        table: the writers of the database.
    """

    def __init__(self, process: int, table: WriterTable[C]) -> None:
        self._process = process
        self._table = table
        self.id: int | None = None
        self._last = NO_CHANGE
        self._is_pending = False  # whether the outcome of the last attempt is unknown
        self._abandoned: int | None = None  # an earlier writer, to be closed with the next registration
        self._connection: C | None = None  # on which the database had the last change

    def begin(self, connection: C, reader: KnownChanges | None) -> ChangeKey:
        """Return the key of the next change; register if necessary.

        If the outcome of the last attempt is unknown, other processes may have read it before a failover.
        So its number is not used again.

        Args:
            connection: without a transaction.
            reader: the reader of the store; None: nothing was loaded.

        Raises:
            ChangesLost: the database does not have the last change.
        """
        is_checked = self.id is None or connection is self._connection
        if self.id is not None and not (is_checked or self._table.can_continue(connection, self.id, self._last)):
            self.id = None
        if self._is_pending:
            self._abandon()
        if self.id is None:
            high = None if reader is None else reader.vector.high
            self.id, new = self._table.register(connection, self._process, abandoned=self._abandoned, high=high)
            self._last, self._abandoned = NO_CHANGE, None
            if reader is not None:
                reader.admit(new)
                if reader.vector.last_of(self.id) is None:  # A failover set the ids back.
                    raise ChangesLost
        self._connection, self._is_pending = connection, True
        return ChangeKey(self.id, self._last + 1)

    @property
    def pending(self) -> ChangeKey | None:
        """The change with an unknown outcome."""
        return ChangeKey(self.id, self._last + 1) if self._is_pending and self.id is not None else None

    def end(self, reader: KnownChanges | None, position: int) -> None:
        """Note the outcome of an attempt.

        Args:
            reader: the reader of the store; None: nothing was loaded.
            position: of the change; 0: there was none.
        """
        key, self._is_pending = self.pending, False
        if key is not None and position:
            self._last = key.seq
            if reader is not None:
                reader.add(key, position)

    def refuse(self) -> None:
        """Note a last attempt without a commit."""
        self._is_pending = False

    def lose(self) -> None:
        """Register again before the next commit: another process closed the writer."""
        self.id, self._is_pending = None, False

    def follow(self, vector: Vector) -> None:
        """Register again before the next commit, unless all changes of the writer are in the database."""
        if self.id is not None and (self._is_pending or vector.last_of(self.id) != self._last):
            self._abandon()

    def _abandon(self) -> None:
        if self.id is not None:
            self._abandoned = self.id
        self.id, self._is_pending = None, False
