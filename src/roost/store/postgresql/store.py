"""The store for several processes: one PostgreSQL database."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors

from roost.errors import StoreBroken, StoreGone, Unavailable
from roost.model.settings.roost_settings import Store as Settings
from roost.model.stored_decision import DecisionQuery
from roost.model.writes import Change, EvidenceRow, Item
from roost.observe import log
from roost.ports import Clock, CommitResult, FeedMark, IdKind, LoadedDatabase, Past
from roost.store.column_file.column_schedule import STATUS, FleetStatus
from roost.store.old_changes import COUNT_CHANGES
from roost.store.peers.heartbeat import Heartbeat
from roost.store.postgresql import history as postgresql_history
from roost.store.postgresql import link, work, writers
from roost.store.postgresql.arrays import Array
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.feed_reader import FeedReader
from roost.store.postgresql.link import ConnectionLost
from roost.store.postgresql.rows import batch_statement, lock_and_read, write_changes
from roost.store.postgresql.versions import heartbeats
from roost.store.postgresql.versions.prepare import prepare_database
from roost.store.rules.batch import Batch, gather
from roost.store.rules.codec import encode_writes
from roost.store.rules.commit_rules import are_committable, find_footprint, judge_all
from roost.store.rules.decision_filter import where
from roost.store.rules.feed.stale_state import ChangesLost
from roost.store.rules.feed_kinds import check_readable
from roost.store.rules.prune import (
    FEED_KEPT_S,
    PRUNED_PER_CALL,
    Deletions,
    Row,
    choose_deletions,
)
from roost.store.rules.schema import DECISION, WRITE_CHECK, put_upkeep, select
from roost.store.rules.vector import NO_CHANGE, ChangeKey, Vector
from roost.store.servers.server_link import History
from roost.store.servers.server_store import ServerStore
from roost.store.snapshots import is_due
from roost.store.work_queries import WorkQueries

_PRUNED_PER_CALL, _FEED_KEPT_S = PRUNED_PER_CALL, FEED_KEPT_S
# Attempts per commit, after lost connections and lost races. Another commit wins each race.
_ROUNDS = 8
# A commit fails after this many statements without an answer: the client has waited long enough.
_LATE_MAX = 2

_FEED = "INSERT INTO feed (writer, seq, body) VALUES (%b, %b, %b) RETURNING position"
# A commit without changes has no row in the feed, so its decisions identify it.
_FIND = """
SELECT position FROM feed WHERE writer = %b AND writer <> 0 AND seq = %b AND body <> ''
UNION ALL SELECT 0 FROM decision WHERE id = ANY (%b) ORDER BY 1 DESC LIMIT 1"""
_RESERVE = """
INSERT INTO sequence AS s (kind, next) VALUES (%b, 1 + %b::bigint)
ON CONFLICT (kind) DO UPDATE SET next = s.next + %b::bigint RETURNING next"""
_BYTES = """
SELECT coalesce((SELECT sum(octet_length(body)) FROM decision), 0)::bigint
     + coalesce((SELECT sum(octet_length(body)) FROM feed), 0)::bigint
     + coalesce((SELECT sum(octet_length(body)) FROM snapshot), 0)::bigint"""
# Writers and numbers, not positions, determine the changes in a snapshot; of changes of earlier versions, transactions.
# The last change of an open writer stays, since other processes look for it.
_OLDEST = """
SELECT * FROM (SELECT 'decision', id, decided_at_s, octet_length(body)::bigint, 0::bigint, 0::bigint, 0::bigint
               FROM decision ORDER BY id LIMIT %b) AS d
UNION ALL
SELECT * FROM (SELECT 'feed', position, extract(epoch FROM written_at)::float8, octet_length(body)::bigint,
                      writer, seq, xid::text::bigint
               FROM feed WHERE written_at < now() - make_interval(secs => %b)
               AND position < (SELECT max(position) FROM feed)
               AND (EXISTS (SELECT 1 FROM feed f WHERE f.writer = feed.writer AND f.writer <> 0
                            AND f.seq = feed.seq + 1)
                    OR NOT EXISTS (SELECT 1 FROM writer w WHERE w.id = feed.writer AND w.retired IS NULL))
               ORDER BY position LIMIT %b) AS f"""
# Estimate the size of all changes from the last ones: an exact sum would read all bodies.
_SINCE_SNAPSHOT = """
WITH newest AS (SELECT position, made_at_s FROM snapshot WHERE part = 0 AND seen LIKE 'w%%'
                ORDER BY position DESC LIMIT 1),
changes AS (SELECT coalesce((SELECT max(position) FROM feed), 0)
                 - coalesce((SELECT position FROM newest), 0) AS count),
last AS (SELECT octet_length(body) AS size FROM feed ORDER BY position DESC LIMIT 100)
SELECT count::bigint, (count * coalesce((SELECT avg(size) FROM last), 0))::bigint,
       (SELECT extract(epoch FROM clock_timestamp())::float8 - made_at_s FROM newest)
FROM changes"""
_BEAT = """
WITH heard AS (SELECT host FROM agent WHERE host = ANY (%b) AND heard_at_s < %b::float8 FOR UPDATE SKIP LOCKED)
UPDATE agent SET heard_at_s = %b::float8 FROM heard WHERE agent.host = heard.host RETURNING 1"""
_WRITER_KEY = "feed_writer"  # index of the numbers of each writer
_CLOSE_S = 1.0
_ORDER_LOCK = 0x726F6F73742D6F72  # "roost-or"


class PostgresStore(ServerStore[link.Link, FeedReader, Connection]):
    """A PostgreSQL database, served by any number of processes."""

    def __init__(self, url: str, *, may_create: bool = True, settings: Settings = link.DEFAULTS) -> None:
        """Open a database; an empty one gets its tables.

        Args:
            url: a URL of libpq.
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
                _warn_of_unused_standbys(own_link)
        else:
            own_link = link.Link(url, settings=settings, role="reader")
        super().__init__(url, own_link, writers.Writers(), beats=beats, settings=settings)

    def _read_all(self, columns: Path | None) -> tuple[History, Vector, LoadedDatabase]:
        return postgresql_history.load(self._url, deadline_s=self._settings.bulk_deadline_s, columns=columns)

    def _reader_from(self, vector: Vector) -> FeedReader:
        return FeedReader(vector)

    def _read_changes(self, reader: FeedReader) -> Sequence[Change] | None:
        return reader.read(self._link)

    def _reserve_block(self, kind: IdKind, size: int) -> int:
        return int(self._read(_RESERVE, (kind, size, size))[0][0])

    def past(self, position: int, visible_changes: str, *, after: FeedMark | None = None) -> Past | None:
        """See ``Store.past``. The vector identifies the changes."""
        if not visible_changes:
            return None
        deadline_s = self._settings.bulk_deadline_s
        return postgresql_history.past(self._url, position, visible_changes, after=after, deadline_s=deadline_s)

    @contextmanager
    def order_creations(self) -> Iterator[None]:
        """See ``Store.order_creations``. It takes a lock, which ends with the connection at the latest."""
        self._read("SELECT pg_advisory_lock(%b::bigint) IS NULL", (_ORDER_LOCK,))
        try:
            yield
        finally:
            if self._link.is_open:  # Otherwise the lock has ended, and unlocking would wait for a new connection.
                with suppress(Unavailable):
                    self._read("SELECT pg_advisory_unlock(%b::bigint)", (_ORDER_LOCK,))

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """See ``Store.commit``. One statement, in one round trip, writes a group of claims and releases.

        If the connection is lost meanwhile, reconnect and look for the commit in the database; if it is absent, repeat
        it. If the server does not return, or no synchronous standby confirms the commit, its outcome stays unknown:
        raise ``Unavailable``. If the commit took place, ``changes`` returns it like a commit of another process.
        """
        assert are_committable(items), "PutGeneration is never committed"
        check_readable(items, "" if self._beats is None else self._beats.lowest_schema)
        if self._beats is not None and any(item.evidence for item in items):
            self._beats.note_decision()
        is_lost, late_count = False, 0
        for _ in range(_ROUNDS):
            try:
                committed = self._find(items) if is_lost else None
                return committed or self._commit(items)
            except ChangesLost:
                log.event("changes_lost", found_by="commit")
                raise
            except ConnectionLost as error:
                if (
                    is_lost and error.is_read_only
                ):  # A new connection leads to the primary, so the primary is configured read-only.
                    raise StoreBroken(link.READ_ONLY_TEXT) from error
                is_lost, late_count = True, late_count + error.is_late
                if late_count == _LATE_MAX:
                    raise StoreGone(f"{error.__cause__}: the outcome of a commit is unknown") from error
            except (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure, _LostRace) as error:
                is_lost = False
                self._writer.refuse()
                if isinstance(error, errors.UniqueViolation) and error.diag.constraint_name == _WRITER_KEY:
                    self._writer.lose()
        raise Unavailable("PostgreSQL: a commit lost its connection, or a race with others, too often: retry later")

    def _commit(self, items: Sequence[Item]) -> CommitResult:
        batch = gather(items)
        committed = None if batch is None else self._commit_batch(batch, len(items))
        if committed is not None:
            return committed
        self._verdicts = [None] * len(items)  # for ``_find``, if the connection is lost before there are verdicts
        with self._link.use_connection() as connection:
            key = self._writer.begin(connection, self._reader)
            position = self._commit_judged(connection, items, key)
        return self._commit_result(position)

    def _commit_judged(self, connection: Connection, items: Sequence[Item], key: ChangeKey) -> int:
        """Write the accepted items; return their position, or 0 if they have no change."""
        with connection.transaction():
            cache = lock_and_read(connection, find_footprint(items))
            refusals, writes = judge_all(cache, items)
            if not write_changes(connection, cache):
                raise _LostRace
            self._verdicts = refusals
            # ``_find`` needs a change, so a commit of work alone writes an empty change.
            if writes or any(item.work for item, refusal in zip(items, refusals, strict=True) if refusal is None):
                row = connection.execute(_FEED, (key.writer, key.seq, encode_writes(writes))).fetchone()
                assert row is not None
                return int(row[0])
        return 0

    def _commit_batch(self, batch: Batch, item_count: int) -> CommitResult | None:
        """Write a batch, all or nothing; return None if a guard did not pass."""
        self._verdicts = [None] * item_count
        try:
            with self._link.use_connection() as connection:
                key = self._writer.begin(connection, self._reader) if batch.writes else None
                statement = batch_statement(batch, key)
                begun_s = time.monotonic()
                row = connection.execute(statement.text, statement.values, prepare=True, binary=True).fetchone()
                elapsed_s = time.monotonic() - begun_s
        except (errors.DivisionByZero, errors.UniqueViolation):
            self._writer.refuse()
            return None
        assert row is not None
        position, _, waited_s = row
        return self._commit_result(position, waited_s=waited_s, elapsed_s=elapsed_s)

    def _find(self, items: Sequence[Item]) -> CommitResult | None:
        """Return the result of the last attempt to commit, after its connection was lost; None if it did not commit.

        The commit may be on the primary alone, since reconnecting ended the server process that waited for a standby.
        """
        verdicts = zip(items, self._verdicts, strict=True)
        ids = [row.id for item, refusal in verdicts if refusal is None for row in item.evidence]
        writer, seq, _ = self._writer.pending or ChangeKey(0, NO_CHANGE)
        found = self._link.read(_FIND, (writer, seq, Array("bigint", ids)), is_any_timeline=True)
        if not found:
            return None
        self._link.confirm()
        return self._commit_result(found[0][0])

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """See ``Store.evidence``."""
        if uuid is None:
            rows = self._read(select(DECISION, "ORDER BY id DESC LIMIT %b"), (newest,))
        else:
            rows = self._read(select(DECISION, "WHERE uuid = ANY (%b)"), (Array("uuid", [uuid]),))
        return [EvidenceRow(*row) for row in rows]

    def refusals(self, *, since_s: float, newest: int) -> list[EvidenceRow]:
        """See ``Store.refusals``."""
        where = "WHERE outcome = 'refused' AND decided_at_s >= %b ORDER BY id DESC LIMIT %b"
        return [EvidenceRow(*row) for row in self._read(select(DECISION, where), (since_s, newest))]

    def decisions(self, query: DecisionQuery) -> list[EvidenceRow]:
        """See ``Store.decisions``."""
        end, values = where(query, mark="%b", uuid_mark="encode(%b, 'hex')::uuid", position="strpos")
        return [EvidenceRow(*row) for row in self._read(select(DECISION, end), values)]

    def document(self, number: int) -> bytes | None:
        """See ``Store.document``."""
        rows = self._read("SELECT body FROM document WHERE id = %b", (number,))
        return bytes(rows[0][0]) if rows else None

    def beat(self, hosts: Iterable[str], now_s: float) -> None:
        """See ``Store.beat``. It skips rows locked by a commit, since the time is only a hint and not worth a wait."""
        self._read(_BEAT, (Array("text", list(hosts)), now_s, now_s))

    def check_writable(self, now_s: float) -> None:
        """See ``Store.check_writable``."""
        self._read(f"{put_upkeep('%b')} RETURNING 1", (WRITE_CHECK, now_s, 0, 0))

    def work_reader(self, clock: Clock) -> WorkQueries:
        """See ``Store.work_reader``. The reader has its own connection, and the time of the server."""
        return WorkQueries(work.WorkRows(self._url, settings=self._settings, losses=self._link.losses))

    def _measure_evidence(self) -> int:
        deadline_s = self._settings.bulk_deadline_s
        with link.translate_errors(), closing(link.connect(self._url, deadline_s=deadline_s)) as connection:
            connection.execute("SET statement_timeout = 0")  # The role may have a shorter one than this program.
            row = connection.execute(_BYTES).fetchone()
            return 0 if row is None else int(row[0])

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """See ``Store.prune``. Changes of the last minutes always stay, since a peer may not have read them.

        Until the first measurement of the size, ``max_bytes`` has no effect.
        """
        stored_bytes = self._evidence_size.get() or 0
        try:
            with self._link.use_connection() as connection, connection.transaction():
                postgresql_history.drop_incomplete(connection)
                deletions = self._choose_deletions(
                    connection, stored_bytes, older_than_s=older_than_s, max_bytes=max_bytes
                )
                if any(deletions[:3]):
                    # Under the lock, no process can complete a snapshot between the choice of rows and their deletion.
                    connection.execute("LOCK TABLE snapshot IN EXCLUSIVE MODE")
                    deletions = self._choose_deletions(
                        connection, stored_bytes, older_than_s=older_than_s, max_bytes=max_bytes
                    )
                for text, numbers in (
                    ("DELETE FROM snapshot WHERE part = 0 AND position = ANY (%b)", deletions.snapshots),
                    ("DELETE FROM decision WHERE id = ANY (%b)", deletions.decisions),
                    ("DELETE FROM feed WHERE position = ANY (%b)", deletions.changes),
                ):
                    if numbers:
                        connection.execute(text, (Array("bigint", [number for (number,) in numbers]),))
                writers.drop_empty(connection)
                heartbeats.drop_old(connection)
            with self._link.use_connection() as connection:
                writers.close_silent(connection, kept_s=_FEED_KEPT_S)
        except ConnectionLost as error:
            return self._log_failed_deletion(error)
        self._evidence_size.subtract(stored_bytes - deletions.left_bytes)
        return len(deletions.decisions) + len(deletions.changes)

    def _choose_deletions(
        self, connection: Connection, stored_bytes: int, *, older_than_s: float, max_bytes: int
    ) -> Deletions:
        values = (_PRUNED_PER_CALL, float(_FEED_KEPT_S), _PRUNED_PER_CALL)
        oldest = connection.execute(_OLDEST, values, prepare=True, binary=True).fetchall()
        snapshots, mark_of = postgresql_history.snapshots(connection)
        return choose_deletions(
            [
                Row(table, number, at_s, size, mark_of(ChangeKey(writer, seq), xid))
                for table, number, at_s, size, writer, seq, xid in oldest
            ],
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
            with self._link.use_connection() as connection, connection.transaction():
                return work.delete_expired(
                    connection,
                    older_than_s,
                    changes_older_than_s=changes_older_than_s,
                    excess=excess,
                    limit=_PRUNED_PER_CALL,
                )
        except (ConnectionLost, errors.DeadlockDetected) as error:
            return self._log_failed_deletion(error)

    def _count_changes(self) -> int:
        return int(self._read(COUNT_CHANGES, ())[0][0])

    def start_snapshot(self, *, every_bytes: int) -> bool:
        """See ``Store.start_snapshot``."""
        changes, feed_bytes, age_s = self._read(_SINCE_SNAPSHOT, ())[0]
        return is_due(changes, feed_bytes, age_s=age_s, every_bytes=every_bytes) and self._snapshots.start()

    def start_column_file(self) -> bool:
        """See ``Store.start_column_file``."""
        return self._columns.start(lambda: FleetStatus(*self._read(STATUS, ())[0]))

    def close(self) -> None:
        """See ``Store.close``."""
        self._evidence_size.stop()
        self._snapshots.stop()
        self._columns.stop()
        # After an error, another process closes the writer later.
        with suppress(Unavailable, ConnectionLost, psycopg.Error):
            self._sign_off()
        if self._beats is not None:
            self._beats.stop()
        self._link.close()

    def _sign_off(self) -> None:
        if self._beats is not None and self._link.is_open:
            with self._link.use_connection(deadline_s=_CLOSE_S) as connection:
                if self._writer.id is not None:
                    writers.close(connection, self._writer.id)
                connection.execute(link.SIGN_OFF)

    def _read(self, text: str, values: Sequence[object]) -> list[Any]:
        return self._link.read(text, values)


def _warn_of_unused_standbys(own_link: link.Link) -> None:
    if count := own_link.count_unused_standbys():
        log.event(
            "commits_not_synchronous",
            standbys=count,
            problem="synchronous_standby_names is empty: a failover loses acknowledged commits",
        )


class _LostRace(Exception):  # never leaves this file
    """Another process changed a row between the read and the write."""
