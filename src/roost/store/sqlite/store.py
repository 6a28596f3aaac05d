"""The embedded store: one SQLite file, one serving process."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from roost.errors import StoreBroken
from roost.model.stored_decision import DecisionQuery
from roost.model.writes import Change, EvidenceRow, Item, Write
from roost.ports import Clock, CommitResult, FeedMark, IdKind, LiveWriter, LoadedDatabase, Past
from roost.store.column_file.column_schedule import STATUS, ColumnSchedule, FleetStatus
from roost.store.old_changes import COUNT_CHANGES, ChangeCount
from roost.store.rules.batch import Batch, gather
from roost.store.rules.codec import encode_writes
from roost.store.rules.commit_rules import are_committable, find_footprint, judge_all
from roost.store.rules.decision_filter import where
from roost.store.rules.prune import Deletions, Row, StoredSize, choose_deletions
from roost.store.rules.schema import BLOCK_SIZES, DECISION, SEQUENCE_TABLES, WRITE_CHECK, put_upkeep, select
from roost.store.snapshots import SnapshotProcess, is_due
from roost.store.sqlite import file, history, work
from roost.store.sqlite.rows import read_footprint, write_batch, write_changes
from roost.store.work_queries import WorkQueries

# Upper bound on rows per table that one call of ``prune`` deletes or counts: some milliseconds of work.
_PRUNED_PER_CALL = 2500
_COUNT = {
    "decision": """SELECT count(*), coalesce(sum(size), 0), min(id) FROM (
        SELECT id, length(body) AS size FROM decision WHERE id <= ? ORDER BY id DESC LIMIT ?)""",
    "feed": """SELECT count(*), coalesce(sum(size), 0), min(position) FROM (
        SELECT position, length(body) AS size FROM feed WHERE position <= ? ORDER BY position DESC LIMIT ?)""",
}
# The newest change stays: the next position follows from it.
_OLDEST = """
SELECT * FROM (SELECT 'decision', id, decided_at_s, length(body), 0 FROM decision ORDER BY id LIMIT ?)
UNION ALL
SELECT * FROM (SELECT 'feed', position, written_at_s, length(body), position FROM feed
               WHERE position < (SELECT max(position) FROM feed) ORDER BY position LIMIT ?)"""
_NEWEST_SNAPSHOT = "SELECT position, made_at_s FROM snapshot WHERE part = 0 ORDER BY position DESC LIMIT 1"
# Estimate the size of all changes from the last ones: an exact sum would read all bodies.
_MEAN_CHANGE = "SELECT avg(size) FROM (SELECT length(body) AS size FROM feed ORDER BY position DESC LIMIT 100)"

_BEAT = "UPDATE agent SET heard_at_s = ? WHERE host = ? AND heard_at_s < ?"


class SqliteStore:
    """A database file. Commits run in the calling thread, so no thread waits for another."""

    is_shared = False  # the lock beside the file excludes other processes
    visible_changes = ""
    process = 0

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: str = "FULL",
        is_read_only: bool = False,
        columns: Path | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Open a database; create an absent one.

        Args:
            path: the file; beside it are a lock file and two files of SQLite, with ``-wal`` and ``-shm``.
            synchronous: FULL (commits survive a power cut) or NORMAL (commits survive only a crash of this process).
            is_read_only: see ``open_reader``.
            columns: path of the column file; None: no file.
            now_s: returns the time for changes, in seconds since the epoch.

        Raises:
            StoreBusy: another process serves it.
            StoreBroken: it is read-only, or not a database of Roost.
            StoreOutdated: its schema is older or newer than the program's.
        """
        self.path = Path(path)
        self._now_s = now_s
        self._snapshots = SnapshotProcess(str(self.path.absolute()))
        self._columns = ColumnSchedule(str(self.path.absolute()), columns)
        self._change_count = ChangeCount()
        self._lock: file.FileLock | None = None
        if is_read_only:
            self._connection = file.open_reader(self.path)
            self._start()
            return
        is_absent = not file.size_of(self.path)
        if is_absent:
            file.make_folder(self.path)
        self._lock = file.FileLock(self.path)
        try:
            if is_absent:
                file.create(self.path)
            self._connection = file.open_writer(self.path, synchronous=synchronous)
            self._start()
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def open_reader(cls, path: str | Path, *, columns: Path | None = None) -> "SqliteStore":
        """Open a database for reading only, beside the process that serves it.

        Raises:
            StoreBroken: it does not exist, or is not a database of Roost.
            StoreOutdated: its schema is older or newer than the program's.
        """
        return cls(path, is_read_only=True, columns=columns)

    def _start(self) -> None:
        """Read the counters; close the database if they cannot be read."""
        self._place = self.path.absolute()
        self._identity = file.identity_of(self._place)
        try:
            self._read_counters()
        except BaseException:
            self._connection.close()
            raise

    def _read_counters(self) -> None:
        with file.translate_errors(self.path):
            row = self._connection.execute("SELECT max(position) FROM feed").fetchone()
            # Pruning keeps the newest change, so positions are never reused.
            self._position: int = row[0] or 0
            self._next_ids: dict[str, int] = dict(self._connection.execute("SELECT kind, next FROM sequence"))
            for kind, table in SEQUENCE_TABLES.items():
                row = self._connection.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608  # our names
                after = (row[0] or 0) + 1
                # Symbols are never deleted, and a class number has 16 bits: a restart must not lose any number.
                self._next_ids[kind] = after if kind == "symbol" else max(self._next_ids.get(kind, 1), after)
        self._reserved = dict(self._next_ids)  # by kind, the end of the reserved block
        self._unsaved: dict[str, int] = {}  # the ends to store with the next commit
        # Decisions are counted down from the highest reserved number. No decision has a higher number.
        self._stored_size = StoredSize({"decision": self._next_ids["decision"] - 1, "feed": self._position})
        self._body_bytes = 0  # of the change in the running transaction

    def load(self, *, from_rows: bool = False) -> LoadedDatabase:
        """See ``Store.load``. It reads on its own connection, so commits continue meanwhile."""
        if self._lock is not None:
            self._check_place()
        loaded = history.load(self._place, columns=None if from_rows else self._columns.path)
        self._columns.note_load(is_cached=loaded.is_cached)
        return loaded

    def past(self, position: int, visible_changes: str, *, after: FeedMark | None = None) -> Past | None:
        """See ``Store.past``. Only one process writes, so the position identifies the visible changes."""
        return history.past(self._place, position, after)

    def order_creations(self) -> AbstractContextManager[None]:
        """See ``Store.order_creations``. No other process writes."""
        return nullcontext()

    def reserve(self, kind: IdKind, count: int) -> int:
        """See ``Store.reserve``. A block becomes durable with the next commit, the first to use its identities."""
        first = self._next_ids[kind]
        self._next_ids[kind] = after = first + count
        if after > self._reserved[kind]:
            self._reserved[kind] = self._unsaved[kind] = max(after, self._reserved[kind] + BLOCK_SIZES[kind])
        return first

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``. A few guarded statements write a group of claims and releases."""
        assert are_committable(items), "PutGeneration is never committed"
        self._check_place()
        batch = gather(items)
        with file.translate_errors(self.path), self._transaction():
            committed = None if batch is None else self._commit_batch(items, batch)
            if committed is None:
                committed = self._commit_judged(items)
        self._position = committed.position
        self._unsaved.clear()
        self._count(items, committed)
        return committed

    def _check_place(self) -> None:
        """Refuse a deleted or replaced file: writes would be lost, and reads would mix a new file with the old log."""
        if file.identity_of(self._place) != self._identity:
            problem = "was deleted or replaced while it is served: nothing is read or written"
            raise StoreBroken(f"{self.path} {problem}; restart")
        if self._lock is not None and not self._lock.is_in_place():
            problem = "was deleted or replaced, so another process may serve the database: nothing is written"
            raise StoreBroken(f"the lock file of {self.path} {problem}; restart")

    def _count(self, items: Sequence[Item], committed: CommitResult) -> None:
        """Add committed changes and decisions to the stored size."""
        if self._body_bytes:
            self._stored_size.add("feed", 1, self._body_bytes)
        sizes = [
            len(row.body)
            for item, refusal in zip(items, committed.refusals, strict=True)
            if refusal is None
            for row in item.evidence
        ]
        self._stored_size.add("decision", len(sizes), sum(sizes))

    def _commit_batch(self, items: Sequence[Item], batch: Batch) -> CommitResult | None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        if not write_batch(connection, batch):
            connection.execute("ROLLBACK")
            return None
        position = self._append(batch.writes)
        connection.execute("COMMIT")
        return CommitResult([None] * len(items), position)

    def _commit_judged(self, items: Sequence[Item]) -> CommitResult:
        self._connection.execute("BEGIN IMMEDIATE")
        cache = read_footprint(self._connection, find_footprint(items))
        refusals, writes = judge_all(cache, items)
        write_changes(self._connection, cache)
        position = self._append(writes)
        self._connection.execute("COMMIT")
        return CommitResult(refusals, position)

    def _append(self, writes: list[Write]) -> int:
        """Write the change, if it is not empty, and the counters; return the new position."""
        if self._unsaved:
            self._connection.executemany(
                "INSERT OR REPLACE INTO sequence (kind, next) VALUES (?, ?)", self._unsaved.items()
            )
        self._body_bytes = 0
        if not writes:
            return self._position
        body = encode_writes(writes)
        self._body_bytes = len(body)
        self._connection.execute(
            "INSERT INTO feed (position, written_at_s, body) VALUES (?, ?, ?)",
            (self._position + 1, self._now_s(), body),
        )
        return self._position + 1

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Roll back after an error."""
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # After a full disk, SQLite has rolled back already.
                self._connection.execute("ROLLBACK")
            raise

    def changes(self) -> Sequence[Change]:
        """See ``Store.changes``. No other process writes, so there are none."""
        return ()

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``."""
        with file.translate_errors(self.path):
            if uuid is None:
                rows = self._connection.execute(select(DECISION, "ORDER BY id DESC LIMIT ?"), (newest,))
            else:
                rows = self._connection.execute(select(DECISION, "WHERE uuid = ?"), (uuid,))
            return [EvidenceRow(*row) for row in rows]

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """See ``Store.refusals``."""
        with file.translate_errors(self.path):
            where = "WHERE outcome = 'refused' AND decided_at_s >= ? ORDER BY id DESC LIMIT ?"
            return [EvidenceRow(*row) for row in self._connection.execute(select(DECISION, where), (since_s, newest))]

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """See ``Store.decisions``."""
        end, values = where(query, mark="?", uuid_mark="?", position="instr")
        with file.translate_errors(self.path):
            return [EvidenceRow(*row) for row in self._connection.execute(select(DECISION, end), values)]

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``."""
        with file.translate_errors(self.path):
            row = self._connection.execute("SELECT body FROM document WHERE id = ?", (number,)).fetchone()
        return None if row is None else bytes(row[0])

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """See ``Store.beat``."""
        with file.translate_errors(self.path), self._transaction():
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(_BEAT, [(now_s, host, now_s) for host in hosts])
            self._connection.execute("COMMIT")

    def check_writable(self, now_s: float) -> None:
        """See ``Store.check_writable``."""
        self._check_place()
        with file.translate_errors(self.path), self._transaction():
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(put_upkeep("?"), (WRITE_CHECK, now_s, 0, 0))
            self._connection.execute("COMMIT")

    def live_writers(self) -> Sequence[LiveWriter]:
        """See ``Store.live_writers``. There are no other processes."""
        return ()

    def work_reader(self, clock: Clock) -> WorkQueries:
        """See ``Store.work_reader``. The reader has its own connection, so commits never wait for it."""
        return WorkQueries(work.WorkRows(self._place, clock))

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``."""
        with file.translate_errors(self.path), self._transaction():
            for table, statement in _COUNT.items():
                before = self._stored_size.last_to_count(table)
                if before:
                    rows, size, lowest = self._connection.execute(statement, (before, _PRUNED_PER_CALL)).fetchone()
                    self._stored_size.count(table, rows, size, lowest=lowest)
            if not self._snapshots.is_writing():
                history.drop_incomplete(self._connection)
            if not any(self._choose_deletions(1, older_than_s=older_than_s, max_bytes=max_bytes)[1][:3]):
                return 0
            # In a transaction, no process can complete a snapshot between the choice of rows and their deletion.
            self._connection.execute("BEGIN IMMEDIATE")
            oldest, deletions = self._choose_deletions(_PRUNED_PER_CALL, older_than_s=older_than_s, max_bytes=max_bytes)
            self._connection.executemany("DELETE FROM snapshot WHERE position = ? AND part = 0", deletions.snapshots)
            self._connection.executemany("DELETE FROM decision WHERE id = ?", deletions.decisions)
            self._connection.executemany("DELETE FROM feed WHERE position = ?", deletions.changes)
            self._connection.execute("COMMIT")
        deleted = {"decision": set(deletions.decisions), "feed": set(deletions.changes)}
        for row in oldest:
            if (row.number,) in deleted[row.table]:
                self._stored_size.remove(row.table, row.number, row.size)
        return len(deletions.decisions) + len(deletions.changes)

    def _choose_deletions(self, limit: int, *, older_than_s: float, max_bytes: int) -> tuple[list[Row], Deletions]:
        """Return up to ``limit`` of the oldest decisions and of the oldest changes, and the rows to delete."""
        oldest = [Row(*row) for row in self._connection.execute(_OLDEST, (limit, limit))]
        snapshots = history.snapshots(self._connection)
        lowest: dict[str, int] = {}
        for row in oldest:
            lowest.setdefault(row.table, row.number)
        stored_bytes = self._stored_size.total(lowest) + sum(snapshot.size for snapshot in snapshots)
        deletions = choose_deletions(
            oldest, snapshots, stored_bytes, older_than_s=older_than_s, max_bytes=max_bytes, limit=limit
        )
        return oldest, deletions

    def prune_work(
        self, *, older_than_s: float, changes_older_than_s: float = -math.inf, changes_max: int | None = None
    ) -> int:
        """See ``Store.prune_work``."""
        with file.translate_errors(self.path), self._transaction():
            excess = self._change_count.take_excess(self._count_changes, changes_max, limit=_PRUNED_PER_CALL)
            return work.delete_expired(
                self._connection,
                older_than_s,
                changes_older_than_s=changes_older_than_s,
                excess=excess,
                limit=_PRUNED_PER_CALL,
            )

    def _count_changes(self) -> int:
        (count,) = self._connection.execute(COUNT_CHANGES).fetchone()
        return int(count)

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """See ``Store.start_snapshot``."""
        with file.translate_errors(self.path):
            newest = self._connection.execute(_NEWEST_SNAPSHOT).fetchone()
            before, made_at_s = newest or (0, None)
            changes = self._position - before
            (mean,) = self._connection.execute(_MEAN_CHANGE).fetchone()
        is_needed = is_due(
            changes,
            int(changes * (mean or 0.0)),
            age_s=None if made_at_s is None else self._now_s() - made_at_s,
            every_bytes=every_bytes,
        )
        return is_needed and self._snapshots.start()

    def start_column_file(self) -> bool:
        """See ``Store.start_column_file``."""
        return self._columns.start(self._read_status)

    def _read_status(self) -> FleetStatus:
        with file.translate_errors(self.path):
            return FleetStatus(*self._connection.execute(STATUS).fetchone())

    def close(self) -> None:
        """See ``Store.close``."""
        self._snapshots.stop()
        self._columns.stop()
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
