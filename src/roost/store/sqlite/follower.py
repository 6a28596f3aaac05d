"""A read-only store that follows a SQLite file, beside the process that serves it.

Each call opens the file and closes it again, so that the process holds no connection when it forks: a child must not
inherit connections of SQLite.
"""

import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Never

from roost.errors import Unavailable
from roost.model.stored_decision import DecisionQuery
from roost.model.writes import Change, EvidenceRow, Item
from roost.ports import Clock, CommitResult, FeedMark, IdKind, LiveWriter, LoadedDatabase, Past
from roost.store.peers.newer_peer import NewerPeers
from roost.store.rules.codec import UnknownChange, decode_change
from roost.store.sqlite import history, work
from roost.store.sqlite.file import identity_of, open_reader, translate_errors
from roost.store.sqlite.store import SqliteStore
from roost.store.work_queries import WorkQueries

_NEWEST = "SELECT coalesce(max(position), 0) FROM feed"
_CHANGES = "SELECT position, body FROM feed WHERE position > ? ORDER BY position"


class SqliteFollower:
    """A read-only store that sees the commits of the serving process.

    Args:
        path: an existing file.
        columns: path of its column file; None: no file.
    """

    is_shared = True
    visible_changes = ""
    process = 0

    def __init__(self, path: Path, *, columns: Path | None = None) -> None:
        self._columns = columns
        self._path = path.absolute()
        self._position = 0  # of the newest change read
        self._identity: tuple[int, int] | None = None  # of the loaded file
        self._newer_peers = NewerPeers()

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        with translate_errors(self._path), closing(open_reader(self._path)) as connection:
            yield connection

    @contextmanager
    def _open(self) -> Iterator[SqliteStore]:
        store = SqliteStore.open_reader(self._path)
        try:
            yield store
        finally:
            store.close()

    def load(self, *, from_rows: bool = False) -> LoadedDatabase:
        """See ``Store.load``."""
        self._identity = identity_of(self._path)
        loaded = history.load(self._path, columns=None if from_rows else self._columns)
        self._position = loaded.position
        return loaded

    def changes(self) -> Sequence[Change] | None:
        """See ``Store.changes``. None: the file was replaced, or unread changes were deleted or are unknown."""
        if identity_of(self._path) != self._identity:
            return None
        with self._connect() as connection:
            connection.execute("BEGIN")
            (newest,) = connection.execute(_NEWEST).fetchone()
            rows = connection.execute(_CHANGES, (self._position,)).fetchall()
        if newest < self._position or len(rows) != newest - self._position:
            return None
        try:
            changes = [decode_change(position, body) for position, body in rows]
        except UnknownChange as change:
            self._newer_peers.note(change)
            return None
        self._position = newest
        return changes

    def past(self, position: int, visible_changes: str, *, after: FeedMark | None = None) -> Past | None:
        """See ``Store.past``."""
        return history.past(self._path, position, after)

    def order_creations(self) -> AbstractContextManager[None]:
        """See ``Store.order_creations``. A follower creates nothing."""
        return nullcontext()

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``."""
        with self._open() as store:
            return store.evidence(uuid=uuid, newest=newest)

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """See ``Store.refusals``."""
        with self._open() as store:
            return store.refusals(since_s=since_s, newest=newest)

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """See ``Store.decisions``."""
        with self._open() as store:
            return store.decisions(query)

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``."""
        with self._open() as store:
            return store.document(number)

    def check_writable(self, now_s: float) -> None:
        """See ``Store.check_writable``.

        Raises:
            Unavailable: always.
        """
        self._refuse()

    def live_writers(self) -> Sequence[LiveWriter]:
        """See ``Store.live_writers``. One process serves a file."""
        return ()

    def work_reader(self, clock: Clock) -> WorkQueries:
        """See ``Store.work_reader``."""
        return WorkQueries(work.WorkRows(self._path, clock))

    def reserve(self, kind: IdKind, count: int) -> int:
        """See ``Store.reserve``.

        Raises:
            Unavailable: always.
        """
        return self._refuse()

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``.

        Raises:
            Unavailable: always.
        """
        return self._refuse()

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """See ``Store.beat``.

        Raises:
            Unavailable: always.
        """
        self._refuse()

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``. Nothing is deleted."""
        return 0

    def prune_work(
        self, *, older_than_s: float, changes_older_than_s: float = -math.inf, changes_max: int | None = None
    ) -> int:
        """See ``Store.prune_work``. Nothing is deleted."""
        return 0

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """See ``Store.start_snapshot``. The serving process writes snapshots."""
        return False

    def start_column_file(self) -> bool:
        """See ``Store.start_column_file``. The serving process writes it."""
        return False

    def close(self) -> None:
        """See ``Store.close``. Nothing is open."""

    @staticmethod
    def _refuse() -> Never:
        raise Unavailable("the database was opened for reading only; nothing was written")
