"""The store for several processes: one MariaDB database, or a Galera cluster."""

import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from roost.errors import StoreBroken, StoreGone, Unavailable
from roost.model.settings.roost_settings import Store as Settings
from roost.model.stored_decision import DecisionQuery
from roost.model.writes import Change, EvidenceRow, Item
from roost.observe import log
from roost.ports import Clock, CommitResult, FeedMark, IdKind, LoadedDatabase, Past
from roost.store.column_file.column_schedule import STATUS, FleetStatus
from roost.store.mariadb import history as mariadb_history
from roost.store.mariadb import link, work, writers
from roost.store.mariadb.connection import (
    READ_ONLY_TEXT,
    Connection,
    ConnectionLost,
    Duplicate,
    LostRace,
    translate_errors,
)
from roost.store.mariadb.feed_reader import FeedReader
from roost.store.mariadb.leases import Lease
from roost.store.mariadb.rows import batch_script, change_statement, lock_and_read, write_changes
from roost.store.mariadb.script import EPOCH_DIFFERS, GUARD_FAILED, fill_in
from roost.store.mariadb.versions import heartbeats
from roost.store.mariadb.versions.prepare import prepare_database
from roost.store.old_changes import COUNT_CHANGES
from roost.store.peers.heartbeat import Heartbeat
from roost.store.rules.batch import Batch, gather
from roost.store.rules.codec import encode_writes
from roost.store.rules.commit_rules import are_committable, find_footprint, judge_all
from roost.store.rules.decision_filter import where
from roost.store.rules.feed.stale_state import ChangesLost, DatabaseRestored
from roost.store.rules.feed_kinds import check_readable
from roost.store.rules.prune import (
    FEED_KEPT_S,
    PRUNED_PER_CALL,
    Deletions,
    Row,
    choose_deletions,
)
from roost.store.rules.schema import DECISION, UPKEEP, WRITE_CHECK, select
from roost.store.rules.vector import NO_CHANGE, ChangeKey, Vector
from roost.store.servers.server_link import History
from roost.store.servers.server_store import ServerStore
from roost.store.snapshots import is_due
from roost.store.work_queries import WorkQueries

_PRUNED_PER_CALL, _FEED_KEPT_S = PRUNED_PER_CALL, FEED_KEPT_S
# Attempts per commit, after lost connections and lost races. Another commit wins each race.
_ROUNDS = 16
# Upper bound of the random pause after a lost race; it begins with the duration of the attempt, and doubles. Without a
# pause, a node of a cluster can lose 25 races in a row.
_PAUSE_MAX_S = 0.5
# A commit fails after this many answers that did not come in time: the client has waited long enough.
_LATE_MAX = 2
_CREATIONS = "creations"  # the lease of ``order_creations``
# The lease of a process that vanished with its node ends within the wait of the others.
_CREATIONS_WAIT_S, _CREATIONS_KEPT_S = 10.0, 8.0

# A commit without changes has no row in the feed, so its decisions identify it.
_FIND = """
SELECT position FROM feed WHERE writer = ? AND seq = ? AND body <> ''
UNION ALL SELECT 0 FROM decision WHERE id IN ? ORDER BY 1 DESC LIMIT 1"""
_RESERVE = """
INSERT INTO sequence (kind, next) VALUES (?, LAST_INSERT_ID(1 + ?))
ON DUPLICATE KEY UPDATE next = LAST_INSERT_ID(next + ?)"""
_BYTES = """
SELECT coalesce((SELECT sum(length(body)) FROM decision), 0)
     + coalesce((SELECT sum(length(body)) FROM feed), 0)
     + coalesce((SELECT sum(size) FROM snapshot), 0)"""
# Writers and numbers, not positions, determine the changes in a snapshot. The last change of an open writer stays,
# since other processes look for it.
_OLDEST = """
SELECT * FROM (SELECT 'decision', id, decided_at_s, length(body), 0 AS writer, 0 AS seq
               FROM decision ORDER BY id LIMIT ?) AS d
UNION ALL
SELECT * FROM (SELECT 'feed', position, written_at_s, length(body), writer, seq
               FROM feed WHERE written_at_s < UNIX_TIMESTAMP(SYSDATE(6)) - ?
               AND position < (SELECT max(position) FROM feed)
               AND (EXISTS (SELECT 1 FROM feed f WHERE f.writer = feed.writer AND f.writer <> 0
                            AND f.seq = feed.seq + 1)
                    OR NOT EXISTS (SELECT 1 FROM writer w WHERE w.id = feed.writer AND w.retired IS NULL))
               ORDER BY position LIMIT ?) AS f"""
# Estimate the size of all changes from the last ones: an exact sum would read all bodies.
_SINCE_SNAPSHOT = """
SELECT (SELECT coalesce(max(position), 0) FROM feed),
       (SELECT max(position) FROM snapshot WHERE part = 0),
       (SELECT avg(size) FROM (SELECT length(body) AS size FROM feed ORDER BY position DESC LIMIT 100) AS last),
       UNIX_TIMESTAMP(SYSDATE(6))
         - (SELECT made_at_s FROM snapshot WHERE part = 0 ORDER BY position DESC LIMIT 1)"""
_FREE_AGENTS = "SELECT host FROM agent WHERE host IN ? AND heard_at_s < ? ORDER BY host FOR UPDATE SKIP LOCKED"
_BEAT = "UPDATE agent SET heard_at_s = ? WHERE host IN ?"
PUT_UPKEEP = (
    f"INSERT INTO upkeep ({', '.join(UPKEEP.columns)}) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE "  # noqa: S608
    + ", ".join(f"{column} = VALUES({column})" for column in UPKEEP.columns[1:])
)
_WRITER_KEY = "feed_writer"  # index of the numbers of each writer
_CLOSE_S = 1.0


class MariaStore(ServerStore[link.Link, FeedReader, Connection]):
    """A MariaDB database, served by any number of processes."""

    def __init__(self, url: str, *, may_create: bool = True, settings: Settings = link.DEFAULTS) -> None:
        """Open a database; an empty one gets its tables.

        Args:
            url: see ``address``.
            may_create: whether to create tables in an empty database, rather than refuse it.
            settings: deadlines and waits.

        Raises:
            Unavailable: the server does not answer.
            StoreBroken: it is empty, and may not get tables.
            StoreOutdated: its schema is older or newer than the program's.
        """
        prepare_database(url, may_create=may_create)
        beats: Heartbeat | None = None
        if may_create:
            beats = Heartbeat(heartbeats.Heartbeats(url, settings=settings))
            with beats.stop_on_error():
                own_link = link.Link(url, settings=settings, process=beats.process)
        else:
            own_link = link.Link(url, settings=settings, role="reader")
        super().__init__(url, own_link, writers.Writers(), beats=beats, settings=settings)

    def _read_all(self, columns: Path | None) -> tuple[History, Vector, LoadedDatabase]:
        return mariadb_history.load(self._url, deadline_s=self._settings.bulk_deadline_s, columns=columns)

    def _reader_from(self, vector: Vector) -> FeedReader:
        return FeedReader(vector)

    def _read_changes(self, reader: FeedReader) -> Sequence[Change] | None:
        return reader.read(self._link)

    def _reserve_block(self, kind: IdKind, size: int) -> int:
        return self._link.write(_RESERVE, (kind, size, size)).last_id

    def past(self, position: int, visible_changes: str, *, after: FeedMark | None = None) -> Past | None:
        """See ``Store.past``. The vector identifies the changes."""
        if not visible_changes:
            return None
        deadline_s = self._settings.bulk_deadline_s
        return mariadb_history.past(self._url, visible_changes, after=after, deadline_s=deadline_s)

    @contextmanager
    def order_creations(self) -> Iterator[None]:
        """See ``Store.order_creations``. It takes a lease, which ends after some seconds at the latest."""
        self._link.run_on(lambda connection: self._creations(connection).wait(_CREATIONS_WAIT_S))
        try:
            yield
        finally:
            if self._link.is_open:  # Otherwise the lease ends by itself, and releasing it would wait for a connection.
                with suppress(Unavailable):
                    self._link.run_on(lambda connection: self._creations(connection).release())

    def _creations(self, connection: Connection) -> Lease:
        lock = link.lock_name(self._link.process)
        return Lease(connection, _CREATIONS, lock=lock, kept_s=_CREATIONS_KEPT_S)

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``. One script, in one round trip, writes a group of claims and releases.

        If the connection is lost meanwhile, reconnect and look for the commit in the database; if it is absent, make
        sure that it cannot come later, and repeat it. If no server answers, its outcome stays unknown: raise
        ``Unavailable``. If the commit took place, ``changes`` returns it like a commit of another process.
        """
        assert are_committable(items), "PutGeneration is never committed"
        check_readable(items, "" if self._beats is None else self._beats.lowest_schema)
        if self._beats is not None and any(item.evidence for item in items):
            self._beats.note_decision()
        is_lost, late_count = False, 0
        for attempt in range(_ROUNDS):
            started_s, may_be_written = time.monotonic(), is_lost
            try:
                committed = self._find(items) if is_lost else None
                may_be_written = False
                return committed or self._commit(items)
            except ChangesLost:
                log.event("changes_lost", found_by="commit")
                raise
            except ConnectionLost as error:
                if is_lost and error.is_read_only:  # A new connection leads to a server that takes writes.
                    raise StoreBroken(READ_ONLY_TEXT) from error
                is_lost, late_count = True, late_count + error.is_late
                if late_count == _LATE_MAX:
                    raise StoreGone(f"{error.__cause__}: the outcome of a commit is unknown") from error
            except (Duplicate, LostRace, _ConsumerGone) as error:
                if not may_be_written:
                    is_lost = False
                    self._writer.refuse()
                late_count += isinstance(error, LostRace) and error.is_wait
                if late_count == _LATE_MAX:
                    outcome = "the outcome of a commit is unknown" if may_be_written else "nothing was written"
                    raise StoreGone(f"MariaDB: a lock was not released in time: {outcome}") from error
                if isinstance(error, Duplicate) and error.key == _WRITER_KEY:
                    self._writer.lose()
                if isinstance(error, LostRace):
                    duration_s = time.monotonic() - started_s
                    time.sleep(random.uniform(0.0, min(duration_s * 2**attempt, _PAUSE_MAX_S)))
        raise Unavailable("MariaDB: a commit lost its connection, or a race with others, too often: retry later")

    def _commit(self, items: Sequence[Item]) -> CommitResult:
        batch = gather(items)
        position = None if batch is None else self._commit_batch(batch, len(items))
        if position is not None:
            return self._commit_result(position)
        self._verdicts = [None] * len(items)  # for ``_find``, if the connection is lost before there are verdicts
        with self._link.use_connection() as connection:
            key = self._writer.begin(connection, self._reader)
            position = self._commit_judged(connection, items, key)
        return self._commit_result(position)

    def _commit_judged(self, connection: Connection, items: Sequence[Item], key: ChangeKey) -> int:
        """Write the accepted items; return their position, or 0 if they have no change."""
        cache = lock_and_read(connection, find_footprint(items), epoch=self._link.epoch)
        refusals, writes = judge_all(cache, items)
        if not write_changes(connection, cache):
            raise _ConsumerGone
        self._verdicts = refusals
        # ``_find`` needs a change, so a commit of work alone writes an empty change.
        if writes or any(item.work for item, refusal in zip(items, refusals, strict=True) if refusal is None):
            results = connection.run([change_statement(key, encode_writes(writes)), "COMMIT"])
            return results[0].last_id
        connection.execute("COMMIT")
        return 0

    def _commit_batch(self, batch: Batch, item_count: int) -> int | None:
        """Write a batch, all or nothing; return its position, or None if a guard did not pass."""
        self._verdicts = [None] * item_count
        try:
            with self._link.use_connection() as connection:
                key = self._writer.begin(connection, self._reader) if batch.writes else None
                ((position,),) = connection.execute(batch_script(batch, key, epoch=self._link.epoch)).rows
        except Duplicate:
            position = GUARD_FAILED
        if position == EPOCH_DIFFERS:
            self._writer.refuse()
            raise DatabaseRestored
        if position == GUARD_FAILED:
            self._writer.refuse()
            return None
        return int(position)

    def _find(self, items: Sequence[Item]) -> CommitResult | None:
        """Return the result of the last attempt to commit, after its connection was lost; None if it did not commit.

        Another node of a cluster may still run the attempt. So close its writer: then it cannot commit any more.
        """
        verdicts = zip(items, self._verdicts, strict=True)
        ids = [row.id for item, refusal in verdicts if refusal is None for row in item.evidence]
        pending = self._writer.pending
        writer, seq, _ = pending or ChangeKey(0, NO_CHANGE)
        query = fill_in(_FIND, (writer, seq, ids))

        def find(connection: Connection) -> int | None:
            rows = connection.execute(query, is_synced=True).rows
            if not rows and pending is not None and not writers.fence(connection, pending):
                rows = connection.execute(query, is_synced=True).rows
            return rows[0][0] if rows else None

        position = self._link.run_on(find, is_any_timeline=True)
        if position is None:
            if pending is not None:
                self._writer.lose()
            return None
        return self._commit_result(position)

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``."""
        if uuid is None:
            rows = self._link.read(select(DECISION, "ORDER BY id DESC LIMIT ?"), (newest,))
        else:
            rows = self._link.read(select(DECISION, "WHERE uuid = ?"), (uuid,))
        return [EvidenceRow(*row) for row in rows]

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """See ``Store.refusals``."""
        end = "WHERE outcome = 'refused' AND decided_at_s >= ? ORDER BY id DESC LIMIT ?"
        return [EvidenceRow(*row) for row in self._link.read(select(DECISION, end), (since_s, newest))]

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """See ``Store.decisions``."""
        end, values = where(query, mark="?", uuid_mark="?", position="instr", hosts="CONCAT(' ', hosts, ' ')")
        return [EvidenceRow(*row) for row in self._link.read(select(DECISION, end), values)]

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``."""
        rows = self._link.read("SELECT body FROM document WHERE id = ?", (number,))
        return bytes(rows[0][0]) if rows else None

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """See ``Store.beat``. It skips rows locked by a commit, since the time is only a hint and not worth a wait."""
        query = fill_in(_FREE_AGENTS, (sorted(hosts), now_s))

        def write(connection: Connection) -> None:
            free = [host for (host,) in connection.run(["START TRANSACTION", query])[1].rows]
            connection.run([*([fill_in(_BEAT, (now_s, free))] if free else []), "COMMIT"])

        self._link.run_on(write)

    def check_writable(self, now_s: float) -> None:
        """See ``Store.check_writable``."""
        self._link.write(PUT_UPKEEP, (WRITE_CHECK, now_s, 0, 0))

    def work_reader(self, clock: Clock) -> WorkQueries:
        """See ``Store.work_reader``. The reader has its own connection, and the time of the server."""
        return WorkQueries(work.WorkRows(self._url, settings=self._settings, losses=self._link.losses))

    def _measure_evidence(self) -> int:
        deadline_s = self._settings.bulk_deadline_s
        with translate_errors(), closing(link.connect(self._url, deadline_s=deadline_s)) as connection:
            return int(connection.execute(_BYTES).rows[0][0])

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``. Changes of the last minutes always stay, since a peer may not have read them.

        Until the first measurement of the size, ``max_bytes`` has no effect.
        """
        stored_bytes = self._evidence_size.get() or 0
        try:
            with self._link.use_connection() as connection:
                deletions = self._delete_oldest(
                    connection, stored_bytes, older_than_s=older_than_s, max_bytes=max_bytes
                )
                writers.drop_empty(connection)
                heartbeats.drop_old(connection)
            with self._link.use_connection() as connection:
                writers.close_silent(connection, kept_s=_FEED_KEPT_S)
        except (ConnectionLost, LostRace) as error:
            return self._log_failed_deletion(error)
        self._evidence_size.subtract(stored_bytes - deletions.left_bytes)
        return len(deletions.decisions) + len(deletions.changes)

    def _delete_oldest(
        self, connection: Connection, stored_bytes: int, *, older_than_s: float, max_bytes: int
    ) -> Deletions:
        """Delete rows unless a process is writing a snapshot; return the deletions."""
        # With the lease, no process can complete a snapshot between the choice of rows and their deletion.
        lease = Lease(connection, mariadb_history.LEASE, lock=link.lock_name(self._link.process))
        if not lease.take():
            return Deletions([], [], [], stored_bytes)
        mariadb_history.drop_incomplete(connection)
        deletions = self._choose_deletions(connection, stored_bytes, older_than_s=older_than_s, max_bytes=max_bytes)
        heads = [(number, 0) for (number,) in deletions.snapshots]
        work.delete_by_key(connection, "snapshot", columns=("position", "part"), keys=heads)
        work.delete_by_key(connection, "decision", columns=("id",), keys=deletions.decisions)
        work.delete_by_key(connection, "feed", columns=("position",), keys=deletions.changes)
        lease.release()
        return deletions

    def _choose_deletions(
        self, connection: Connection, stored_bytes: int, *, older_than_s: float, max_bytes: int
    ) -> Deletions:
        values = (_PRUNED_PER_CALL, float(_FEED_KEPT_S), _PRUNED_PER_CALL)
        oldest = connection.execute(fill_in(_OLDEST, values), is_synced=True).rows
        snapshots, mark_of = mariadb_history.snapshots(connection)
        return choose_deletions(
            [Row(table, number, at_s, size, mark_of(ChangeKey(*key))) for table, number, at_s, size, *key in oldest],
            snapshots,
            stored_bytes,
            older_than_s=older_than_s,
            max_bytes=max_bytes,
            limit=_PRUNED_PER_CALL,
        )

    def prune_work(
        self, *, older_than_s: float, changes_older_than_s: float = -math.inf, changes_max: int | None = None
    ) -> int:
        """See ``Store.prune_work``."""
        try:
            excess = self._change_count.take_excess(self._count_changes, changes_max, limit=_PRUNED_PER_CALL)
            with self._link.use_connection() as connection:
                return work.delete_expired(
                    connection,
                    older_than_s,
                    changes_older_than_s=changes_older_than_s,
                    excess=excess,
                    limit=_PRUNED_PER_CALL,
                )
        except (ConnectionLost, LostRace) as error:
            return self._log_failed_deletion(error)

    def _count_changes(self) -> int:
        return int(self._link.read(COUNT_CHANGES)[0][0])

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """See ``Store.start_snapshot``."""
        newest, before, mean, age_s = self._link.read(_SINCE_SNAPSHOT)[0]
        changes = newest - (before or 0)
        feed_bytes = int(changes * float(mean or 0))
        return is_due(changes, feed_bytes, age_s=age_s, every_bytes=every_bytes) and self._snapshots.start()

    def start_column_file(self) -> bool:
        """See ``Store.start_column_file``."""
        return self._columns.start(lambda: FleetStatus(*self._link.read(STATUS)[0]))

    def close(self) -> None:
        """See ``Store.close``."""
        self._evidence_size.stop()
        self._snapshots.stop()
        self._columns.stop()
        if self._writer.id is not None and self._link.is_open:
            # After an error, another process closes it later.
            with (
                suppress(Unavailable, ConnectionLost, Duplicate),
                self._link.use_connection(deadline_s=_CLOSE_S) as connection,
            ):
                writers.close(connection, self._writer.id)
        if self._beats is not None:
            self._beats.stop()
        self._link.close()


class _ConsumerGone(Exception):  # never leaves this file
    """Another process deleted a consumer between the read and the write."""
