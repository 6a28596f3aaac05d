"""The common part of the stores on database servers: loading, changes of other processes, and blocks of identities."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from roost.errors import StoreReplaced, first_line
from roost.model.settings.roost_settings import Store as Settings
from roost.model.writes import Change, Refusal
from roost.observe import log
from roost.ports import CommitResult, IdKind, LiveWriter, LoadedDatabase
from roost.store.column_file.column_schedule import ColumnSchedule
from roost.store.column_file.file_place import place_in_folder
from roost.store.old_changes import ChangeCount
from roost.store.peers.heartbeat import Heartbeat
from roost.store.peers.newer_peer import NewerPeers
from roost.store.rules.codec import UnknownChange
from roost.store.rules.feed.known_changes import KnownChanges
from roost.store.rules.feed.own_writer import OwnWriter, WriterTable
from roost.store.rules.feed.visible_changes import visible_text
from roost.store.rules.schema import BLOCK_SIZES
from roost.store.rules.vector import Vector
from roost.store.servers.evidence_size import EvidenceSize
from roost.store.servers.server_link import History, ServerLink, retry
from roost.store.snapshots import SnapshotProcess

LinkT = TypeVar("LinkT", bound=ServerLink[Any])
ReaderT = TypeVar("ReaderT", bound=KnownChanges)
ConnectionT = TypeVar("ConnectionT")


class ServerStore(ABC, Generic[LinkT, ReaderT, ConnectionT]):
    """A database on a server, used by any number of processes.

    Args:
        url: of the database.
        link: the connection for commits.
        writers: the writers of the database.
        beats: the heartbeats of this process; None: it only reads.
        settings: deadlines and waits.
    """

    is_shared = True

    def __init__(
        self,
        url: str,
        link: LinkT,
        writers: WriterTable[ConnectionT],
        *,
        beats: Heartbeat | None,
        settings: Settings,
    ) -> None:
        self._url = url
        self._settings = settings
        self._link = link
        self._beats = beats
        self._snapshots = SnapshotProcess(url)
        self._columns = ColumnSchedule(url, place_in_folder(url, settings))
        self._change_count = ChangeCount()
        self._reader: ReaderT | None = None  # None until ``load``
        self._blocks: dict[str, tuple[int, int]] = {}  # next identity, end of the block
        self._position = 0
        self._verdicts: list[Refusal | None] = []  # of the last attempt to commit
        self._writer: OwnWriter[ConnectionT] = OwnWriter(link.process, writers)
        self._newer_peers = NewerPeers()
        self._evidence_size = EvidenceSize(self._measure_evidence)

    @abstractmethod
    def _read_all(self, columns: Path | None) -> tuple[History, Vector, LoadedDatabase]:
        """Read the whole database on a connection of its own.

        Args:
            columns: its column file; None: read all rows.
        """

    @abstractmethod
    def _reader_from(self, vector: Vector) -> ReaderT:
        """Return a reader of the changes beyond a vector."""

    @abstractmethod
    def _read_changes(self, reader: ReaderT) -> Sequence[Change] | None:
        """Return the changes since the last call; None: some are missing.

        Raises:
            StoreReplaced: everything must be read again.
            UnknownChange: a newer program wrote one.
        """

    @abstractmethod
    def _measure_evidence(self) -> int:
        """Return the size of all decisions, changes and snapshots, read on a connection of its own, bytes."""

    @abstractmethod
    def _reserve_block(self, kind: IdKind, size: int) -> int:
        """Reserve identities in a transaction of its own, and return the end of their block."""

    def load(self, *, from_rows: bool = False) -> LoadedDatabase:
        """See ``Store.load``. It reads on its own connection, so commits continue meanwhile."""
        columns = None if from_rows else self._columns.path
        history, vector, loaded = retry(partial(self._read_all, columns), wait_s=self._settings.wait_s)
        self._blocks.clear()  # After a restore or failover, ``sequence`` may give these identities to another process.
        self._link.set_history(history)
        self._writer.follow(vector)
        self._reader, self._position = self._reader_from(vector), loaded.position
        self._columns.note_load(is_cached=loaded.is_cached)
        return loaded

    @property
    def visible_changes(self) -> str:
        """See ``Store.visible_changes``: the vector, this process, and the server or its timeline."""
        assert self._reader is not None, "load comes first"
        assert self._link.history is not None, "load comes first"
        return visible_text(self._reader.text, self._link.process, self._link.history.timeline)

    def changes(self) -> Sequence[Change] | None:
        """See ``Store.changes``. It takes one round trip, with or without new changes."""
        assert self._reader is not None, "load comes first"
        try:
            changes = self._read_changes(self._reader)
        except StoreReplaced:
            return None
        except UnknownChange as change:
            self._newer_peers.note(change, [writer.schema for writer in self.live_writers()])
            return None
        if changes is None:
            log.event("changes_lost", found_by="read")
        if changes:
            self._position = max(self._position, changes[-1].position)
        return changes

    def reserve(self, kind: IdKind, count: int) -> int:
        """See ``Store.reserve``. Blocks are reserved in a table, each in its own transaction."""
        first, end = self._blocks.get(kind, (0, 0))
        if end - first < count:
            size = max(count, BLOCK_SIZES[kind])
            end = self._reserve_block(kind, size)
            first = end - size
        self._blocks[kind] = (first + count, end)
        return first

    def _log_failed_deletion(self, error: Exception) -> int:
        """Log why old rows stay, and return the number of deleted rows; the next call tries again."""
        log.event("old_rows_kept", error=first_line(error))
        return 0

    def _commit_result(self, position: int, *, waited_s: float | None = None, elapsed_s: float = 0.0) -> CommitResult:
        self._writer.end(self._reader, position)
        self._position = max(self._position, position)
        return CommitResult(self._verdicts, position or self._position, waited_s, elapsed_s)

    @property
    def process(self) -> int:
        """See ``Store.process``."""
        return self._link.process

    def live_writers(self) -> Sequence[LiveWriter]:
        """See ``Store.live_writers``."""
        return () if self._beats is None else self._beats.writers
