"""Snapshots of a PostgreSQL database, and its content now and at earlier moments."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import psycopg

from roost.model.writes import Write
from roost.ports import FeedMark, LoadedDatabase, Past
from roost.store.dump import writes_of
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import DEFAULTS, HISTORY, History, connect, translate_errors
from roost.store.rules.codec import decode_writes, parts_of
from roost.store.rules.prune import Snapshot
from roost.store.rules.schema import ALLOCATION, Table, select

# Parts to delete per call.
_DROPPED_PER_CALL = 8
# Advisory lock of the process that writes a snapshot.
_WRITER_LOCK = 0x726F6F73742D736E  # "roost-sn"
# Upper bound on attempts to commit between a decision and the commit of its group, far above the number in practice.
_ATTEMPTS_MAX = 2**20
# The decision must have seen all content of the snapshot: every transaction that the snapshot may contain ended before
# the decision. ``seen`` is a pg_snapshot and, after a blank, the timeline, since transaction numbers mean nothing on
# another timeline. Older snapshots have no timeline. They are usable while the server is on the timeline of the
# decision.
_BASE = """
SELECT position, split_part(seen, ' ', 1) FROM snapshot
WHERE part = 0 AND pg_snapshot_xmax(split_part(seen, ' ', 1)::pg_snapshot) <= pg_snapshot_xmin(%s::pg_snapshot)
  AND split_part(seen, ' ', 2) = ANY (%s)
ORDER BY position DESC LIMIT 1"""
_HAS_OLDER = """
SELECT 1 FROM snapshot
WHERE part = 0 AND pg_snapshot_xmax(split_part(seen, ' ', 1)::pg_snapshot) <= pg_snapshot_xmin(%s::pg_snapshot)
  AND split_part(seen, ' ', 2) = ANY (%s)
LIMIT 1"""
_CHANGES = """
SELECT body FROM feed
WHERE xid >= pg_snapshot_xmin(%(base)s::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, %(base)s::pg_snapshot)
  AND (pg_visible_in_snapshot(xid, %(seen)s::pg_snapshot) OR (token > %(first)s AND token <= %(last)s))
  AND position <= %(position)s
ORDER BY position"""
_OWN = """
SELECT body FROM feed
WHERE xid >= pg_snapshot_xmin(%(seen)s::pg_snapshot) AND token > %(last)s AND token <= %(end)s
ORDER BY token LIMIT 1"""
_IS_NEWEST = """
SELECT 1 FROM snapshot
WHERE part = 0 AND position = (SELECT coalesce(max(position), 0) FROM feed)"""
_PART = """
INSERT INTO snapshot (position, part, made_at_s, seen, body) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (position, part) DO UPDATE
SET made_at_s = excluded.made_at_s, seen = excluded.seen, body = excluded.body"""
# Another process may delete parts meanwhile: write the head only if all of them exist.
_HEAD = """
INSERT INTO snapshot (position, part, made_at_s, seen, body)
SELECT %(position)s, 0, %(made_at_s)s, %(seen)s, ''
WHERE (SELECT count(*) FROM snapshot WHERE position = %(position)s AND part > 0 AND seen = %(seen)s) = %(count)s"""
# A snapshot contains at least the changes of all transactions before the oldest running one.
_SNAPSHOTS = """
SELECT position, max(pg_snapshot_xmin(split_part(seen, ' ', 1)::pg_snapshot)::text::bigint) - 1, max(made_at_s),
       sum(octet_length(body))::bigint, min(part) = 0
FROM snapshot GROUP BY position ORDER BY position"""
_DROP = """
DELETE FROM snapshot WHERE (position, part) IN (
    SELECT position, part FROM snapshot s
    WHERE NOT EXISTS (SELECT 1 FROM snapshot h WHERE h.position = s.position AND h.part = 0) LIMIT %s)"""


class _VisibleChanges(NamedTuple):
    """The parts of ``PostgresStore.visible_changes``."""

    snapshot: str
    last: int  # token of the last own attempt to commit
    first: int  # token of the last own attempt before the snapshot
    timeline: str  # of the server at the snapshot; empty in older records


def _parse_visible_changes(text: str) -> _VisibleChanges:
    snapshot, token, since, *timeline = text.split(" ")
    return _VisibleChanges(snapshot, int(token, 16), int(token, 16) - int(since, 16), "".join(timeline))


def load(url: str, *, deadline_s: float = DEFAULTS.bulk_deadline_s) -> tuple[History, str, LoadedDatabase]:
    """Return the history, the current snapshot, and the content in that snapshot; see ``Store.load``.

    It reads on its own connection, so commits continue meanwhile.

    Args:
        url: a URL of libpq.
        deadline_s: of each statement.
    """
    with translate_errors():
        connection = _reader(url, deadline_s=deadline_s)
        try:
            history = connection.execute(HISTORY).fetchone()
            row = connection.execute("SELECT pg_current_snapshot()::text, max(position) FROM feed").fetchone()
        except BaseException:
            connection.close()
            raise
    assert history is not None
    assert row is not None
    return History(*history), row[0], LoadedDatabase(row[1] or 0, _closing(connection, writes_of(_scan_of(connection))))


def past(
    url: str,
    position: int,
    text: str,
    *,
    after: FeedMark | None = None,
    deadline_s: float = DEFAULTS.bulk_deadline_s,
) -> Past | None:
    """See ``Store.past``. Changes after the position are excluded, regardless of their transaction numbers."""
    visible = _parse_visible_changes(text)
    with translate_errors():
        connection = _reader(url, deadline_s=deadline_s)
        try:
            now = connection.execute(HISTORY).fetchone()
            assert now is not None
            timelines = [visible.timeline, *([""] if visible.timeline in ("", now[1]) else [])]
            base = connection.execute(_BASE, (visible.snapshot, timelines)).fetchone()
            base_after = None if after is None else _find_base(connection, after, visible, timelines=timelines)
            if base is None:
                connection.close()
                return None
            values = {"seen": visible.snapshot, "last": visible.last, "end": visible.last + _ATTEMPTS_MAX}
            row = connection.execute(_OWN, values).fetchone()
            own = [] if row is None else decode_writes(row[0])
        except BaseException:
            connection.close()
            raise
    writes = _writes_between(connection, base_after or base, visible, position=position)
    return Past(_closing(connection, writes), own, is_after=base_after is not None)


def _find_base(
    connection: Connection, after: FeedMark, visible: _VisibleChanges, *, timelines: list[str]
) -> tuple[None, str] | None:
    """Return the snapshot of a mark; None: the decision may not have seen all of it, or changes since were deleted.

    A stored snapshot keeps the changes after it. So one that is not newer than the mark keeps all changes since.
    """
    if not after.visible:
        return None
    mark = _parse_visible_changes(after.visible)
    if not mark.timeline or mark.timeline != visible.timeline or mark.last != mark.first:
        return None
    is_seen = int(mark.snapshot.split(":")[1]) <= int(visible.snapshot.split(":")[0])
    is_kept = connection.execute(_HAS_OLDER, (mark.snapshot, timelines)).fetchone()
    return (None, mark.snapshot) if is_seen and is_kept is not None else None


def _writes_between(
    connection: Connection, base: tuple[int | None, str], visible: _VisibleChanges, *, position: int
) -> Iterator[Write]:
    base_position, snapshot = base
    parts = "SELECT body FROM snapshot WHERE position = %s AND part > 0 ORDER BY part"
    for body in _bodies(connection, parts, (base_position,), at_once=8):
        yield from decode_writes(body)
    values = {
        "base": snapshot,
        "seen": visible.snapshot,
        "first": visible.first,
        "last": visible.last,
        "position": position,
    }
    for body in _bodies(connection, _CHANGES, values, at_once=1000):
        yield from decode_writes(body)


def _bodies(connection: Connection, text: str, values: Any, *, at_once: int) -> Iterator[bytes]:
    with connection.cursor("bodies", binary=True) as cursor:
        cursor.itersize = at_once
        for (body,) in cursor.execute(text.encode(), values):
            yield body


def _reader(url: str, *, deadline_s: float) -> Connection:
    connection = connect(url, deadline_s=deadline_s)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    connection.autocommit = False
    return connection


def _closing(connection: Connection, writes: Iterator[Write]) -> Iterator[Write]:
    """Return the same writes; close the connection after the last one, or when the iterator is dropped."""
    iterator = _until_closed(connection, writes)
    next(iterator)  # Only a started generator runs its ``finally`` when it is dropped.
    return cast("Iterator[Write]", iterator)


def _until_closed(connection: Connection, writes: Iterator[Write]) -> Iterator[Write | None]:
    try:
        yield None
        with translate_errors():
            yield from writes
    finally:
        connection.close()


def _scan_of(connection: Connection) -> Any:
    def scan(table: Table) -> Iterable[tuple[Any, ...]]:
        columns = ("consumer_id", "inventory_id") if table is ALLOCATION else table.key
        with connection.cursor(f"scan_{table.name}", binary=True) as cursor:
            cursor.itersize = 5000
            yield from cursor.execute(select(table, f"ORDER BY {', '.join(columns)}"))

    return scan


def write_snapshot(url: str) -> bool:
    """Write a snapshot of a database, beside the processes that serve it; return whether it was written.

    Skip it if another process is writing one. Each part has its own transaction. If the process is killed, an
    incomplete snapshot remains: parts without a head.
    """
    writer = connect(url)
    try:
        with translate_errors():
            row = writer.execute("SELECT pg_try_advisory_lock(%s)", (_WRITER_LOCK,)).fetchone()
            if row is None or not row[0]:
                return False
            if writer.execute(_IS_NEWEST).fetchone() is not None:
                return False
            made_at_s = time.time()
            history, snapshot, loaded = load(url)
            seen = f"{snapshot} {history.timeline}"
            head = {"position": loaded.position, "made_at_s": made_at_s, "seen": seen, "count": 0}
            for part, body in enumerate(parts_of(loaded.writes), start=1):
                writer.execute(_PART, (loaded.position, part, made_at_s, seen, body))
                head["count"] = part
            return writer.execute(_HEAD, head).rowcount == 1
    finally:
        writer.close()


def snapshots(connection: Connection) -> list[Snapshot]:
    """Return all snapshots, complete or not."""
    return [Snapshot(*row) for row in connection.execute(_SNAPSHOTS, prepare=True, binary=True).fetchall()]


def drop_incomplete(connection: Connection) -> None:
    """Delete some parts of incomplete snapshots, in the running transaction, unless a process is writing one."""
    row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_WRITER_LOCK,)).fetchone()
    if row is not None and row[0]:
        connection.execute(_DROP, (_DROPPED_PER_CALL,))
