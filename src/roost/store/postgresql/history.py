"""Snapshots of a PostgreSQL database, and its content now and at earlier moments."""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from roost.engine.fill.table_columns import Part
from roost.model.writes import Write
from roost.ports import FeedMark, LoadedDatabase, Past
from roost.store.column_file.cached_load import read_cached
from roost.store.column_file.file_layout import ColumnBase
from roost.store.column_file.vector_base import VectorView
from roost.store.dump import parts_of
from roost.store.postgresql import older_history
from roost.store.postgresql.bulk_reader import bodies, closing_after, connect_reader
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.feed_reader import read_beyond
from roost.store.postgresql.link import DEFAULTS, HISTORY, connect, translate_errors
from roost.store.postgresql.versions.read_schema import read_schema
from roost.store.postgresql.writers import read_vector
from roost.store.rules.codec import decode_writes, pack_writes
from roost.store.rules.feed.visible_changes import VisibleChanges, find_base, find_mark
from roost.store.rules.prune import Snapshot
from roost.store.rules.schema import ALLOCATION, Table, select
from roost.store.rules.vector import ChangeKey, Found, Missing, Vector, is_vector_text, is_whole
from roost.store.servers.server_link import History

# Parts to delete per call.
_DROPPED_PER_CALL = 8
# Advisory lock of the process that writes a snapshot.
_NO_LIMIT = 2**62
_WRITER_LOCK = 0x726F6F73742D736E  # "roost-sn"
# A text in ``seen`` has a vector and, after a blank, the timeline of the server. Snapshots of earlier versions have a
# transaction snapshot instead of the vector.
_HEADS = "SELECT position, seen FROM snapshot WHERE part = 0 AND seen LIKE 'w%' ORDER BY position DESC"
_SPANS = """
unnest(%(writers)s::bigint[], %(after)s::bigint[], %(until)s::bigint[]) AS k (writer, after, until)
JOIN feed f ON f.writer = k.writer AND f.writer <> 0 AND f.seq > k.after AND f.seq <= k.until"""
_FOUND = f"""
SELECT f.writer, count(*), min(f.seq), max(f.seq), bool_or(f.body = '') FROM {_SPANS} GROUP BY f.writer"""  # noqa: S608
_OTHERS = """
FROM feed f WHERE f.writer <> 0 AND f.writer > %(low)s AND f.writer <= %(high)s AND f.writer <> ALL (%(writers)s)"""
_CHANGES = f"""
SELECT f.position, f.body FROM {_SPANS} WHERE f.body <> ''
UNION ALL SELECT f.position, f.body {_OTHERS} AND f.body <> ''
ORDER BY 1"""  # noqa: S608  # our text
_OWN_WRITERS = "SELECT id FROM writer WHERE process = %s"
_OWN = """
SELECT f.body FROM unnest(%s::bigint[], %s::bigint[]) AS k (writer, seq)
CROSS JOIN LATERAL (
    SELECT position, body FROM feed WHERE feed.writer = k.writer AND feed.writer <> 0 AND feed.seq > k.seq
    AND body <> '' ORDER BY feed.seq LIMIT 1) AS f
ORDER BY f.position LIMIT 1"""
_IS_NEWEST = """
SELECT 1 FROM snapshot
WHERE part = 0 AND seen LIKE 'w%' AND position = (SELECT coalesce(max(position), 0) FROM feed)"""
_PART = """
INSERT INTO snapshot (position, part, made_at_s, seen, body) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (position, part) DO UPDATE
SET made_at_s = excluded.made_at_s, seen = excluded.seen, body = excluded.body"""
# Another process may delete parts meanwhile: write the head only if all of them exist.
_HEAD = """
INSERT INTO snapshot (position, part, made_at_s, seen, body)
SELECT %(position)s, 0, %(made_at_s)s, %(seen)s, ''
WHERE (SELECT count(*) FROM snapshot WHERE position = %(position)s AND part > 0 AND seen = %(seen)s) = %(count)s"""
_SNAPSHOTS = """
SELECT position, max(seen) FILTER (WHERE part = 0), max(made_at_s), sum(octet_length(body))::bigint
FROM snapshot GROUP BY position ORDER BY position"""
_DROP = """
DELETE FROM snapshot WHERE (position, part) IN (
    SELECT position, part FROM snapshot s
    WHERE NOT EXISTS (SELECT 1 FROM snapshot h WHERE h.position = s.position AND h.part = 0) LIMIT %s)"""


def load(
    url: str, *, deadline_s: float = DEFAULTS.bulk_deadline_s, columns: Path | None = None
) -> tuple[History, Vector, LoadedDatabase]:
    """Return the history, the changes up to now, and the content after them; see ``Store.load``.

    It reads on its own connection, so commits continue meanwhile.

    Args:
        url: a URL of libpq.
        deadline_s: of each statement.
        columns: path of the column file; None: read all rows.
    """
    with _open_view(url, deadline_s=deadline_s) as (connection, history, view):
        cached = read_cached(columns, view)
        if cached is None:
            loaded = LoadedDatabase(view.base.position, closing_after(connection, parts_of(_scan_of(connection))))
        else:
            connection.close()
            loaded = LoadedDatabase(view.base.position, cached.parts, cached.later, is_cached=True)
    return history, view.vector, loaded


def load_columns(url: str) -> tuple[ColumnBase, Iterator[Part]]:
    """See ``Database.load_columns``."""
    with _open_view(url, deadline_s=DEFAULTS.bulk_deadline_s) as (connection, _, view):
        return view.base, closing_after(connection, parts_of(_scan_of(connection)))


@contextmanager
def _open_view(url: str, *, deadline_s: float) -> Iterator[tuple[Connection, History, VectorView]]:
    """Yield a connection for reads as of one moment; after an error, close it."""
    with translate_errors():
        connection = connect_reader(url, deadline_s=deadline_s)
        try:
            history = connection.execute(HISTORY).fetchone()
            vector = read_vector(connection)
            row = connection.execute("SELECT coalesce(max(position), 0) FROM feed").fetchone()
            assert history is not None
            assert row is not None
            found = History(*history)
            yield (
                connection,
                found,
                VectorView(
                    lambda text: connection.execute(text.encode()).fetchall(),
                    partial(read_beyond, connection),
                    vector=vector,
                    position=row[0],
                    schema=read_schema(connection).version,
                    epoch=found.epoch,
                ),
            )
        except BaseException:
            connection.close()
            raise


def past(
    url: str,
    position: int,
    text: str,
    *,
    after: FeedMark | None = None,
    deadline_s: float = DEFAULTS.bulk_deadline_s,
) -> Past | None:
    """See ``Store.past``. The position bounds the changes only in decisions of earlier versions."""
    if not is_vector_text(text):
        return older_history.past(connect_reader(url, deadline_s=deadline_s), position, text)
    visible = VisibleChanges.from_text(text)
    with translate_errors():
        connection = connect_reader(url, deadline_s=deadline_s)
        try:
            are_stored = partial(_are_stored, connection)
            base = find_base(connection.execute(_HEADS.encode()).fetchall(), visible.vector, are_stored)
            if base is None:
                connection.close()
                return None
            known = None if after is None else find_mark(after, visible.vector, are_stored)
            own = _find_own(connection, visible)
        except BaseException:
            connection.close()
            raise
    base_position, base_vector = base if known is None else (None, known)
    missing = visible.vector.missing_in(base_vector)
    return Past(
        closing_after(connection, _writes_of(connection, base_position, missing)), own, is_after=known is not None
    )


def _are_stored(connection: Connection, missing: Missing) -> bool:
    """Return whether the feed has all changes of some spans; a failover or pruning may have deleted some."""
    rows = connection.execute(_FOUND.encode(), _parameters(missing)).fetchall()
    found = {row[0]: Found(*row[1:]) for row in rows}
    return all(is_whole(span, found.get(span.writer)) for span in missing.spans)


def _find_own(connection: Connection, visible: VisibleChanges) -> list[Write]:
    """Return the first change of the process after a decision, the one with the decision."""
    last = visible.last_own(writer for (writer,) in connection.execute(_OWN_WRITERS, (visible.process,)).fetchall())
    row = connection.execute(_OWN, (list(last), list(last.values()))).fetchone()
    return [] if row is None else decode_writes(row[0])


def _parameters(missing: Missing) -> dict[str, Any]:
    return {
        "writers": [span.writer for span in missing.spans],
        "after": [span.after for span in missing.spans],
        "until": [_NO_LIMIT if span.until is None else span.until for span in missing.spans],
        "low": missing.high[0],
        "high": missing.high[1],
    }


def _writes_of(connection: Connection, base_position: int | None, missing: Missing) -> Iterator[Write]:
    """Yield the content of a snapshot, and some changes; without a position, the changes alone."""
    if base_position is not None:
        parts = "SELECT body FROM snapshot WHERE position = %s AND part > 0 ORDER BY part"
        for body in bodies(connection, parts, (base_position,), at_once=8):
            yield from decode_writes(body)
    for body in bodies(connection, f"SELECT body FROM ({_CHANGES}) AS c", _parameters(missing), at_once=1000):  # noqa: S608
        yield from decode_writes(body)


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
            history, vector, loaded = load(url)
            seen = f"{vector.to_text()} {history.timeline}"
            head = {"position": loaded.position, "made_at_s": made_at_s, "seen": seen, "count": 0}
            for part, body in enumerate(pack_writes(loaded.writes), start=1):
                writer.execute(_PART, (loaded.position, part, made_at_s, seen, body))
                head["count"] = part
            return writer.execute(_HEAD, head).rowcount == 1
    finally:
        writer.close()


def snapshots(connection: Connection) -> tuple[list[Snapshot], Callable[[ChangeKey, int], int]]:
    """Return all snapshots, complete or not, and a function for the mark of a change.

    The function takes the key of a change and its transaction. The mark is the number of the first complete snapshot
    with the change.
    """
    found, heads = list[Snapshot](), list[Vector | int]()
    for position, seen, made_at_s, size in connection.execute(_SNAPSHOTS, prepare=True, binary=True).fetchall():
        if seen is not None:
            text = seen.split(" ")[0]
            heads.append(Vector.from_text(text) if is_vector_text(text) else older_history.oldest_running(text))
        found.append(Snapshot(position, len(heads), made_at_s, size, seen is not None))

    def has(head: Vector | int, key: ChangeKey, xid: int) -> bool:
        if isinstance(head, Vector):
            return head.contains(key.writer, key.seq)
        return key.writer == 0 and xid < head

    def mark_of(key: ChangeKey, xid: int) -> int:
        return 1 + bisect_left(heads, True, key=lambda head: has(head, key, xid))

    return found, mark_of


def drop_incomplete(connection: Connection) -> None:
    """Delete some parts of incomplete snapshots, in the running transaction, unless a process is writing one."""
    row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_WRITER_LOCK,)).fetchone()
    if row is not None and row[0]:
        connection.execute(_DROP, (_DROPPED_PER_CALL,))
