"""Snapshots of a MariaDB database, and its content now and at earlier moments."""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from roost.engine.fill.table_columns import Part
from roost.model.writes import Write
from roost.ports import FeedMark, LoadedDatabase, Past
from roost.store.column_file.cached_load import read_cached
from roost.store.column_file.file_layout import ColumnBase
from roost.store.column_file.vector_base import VectorView
from roost.store.dump import parts_of
from roost.store.mariadb.bulk_reader import closing_after, connect_reader, pages, scan
from roost.store.mariadb.connection import Connection, translate_errors
from roost.store.mariadb.feed_reader import read_beyond
from roost.store.mariadb.leases import Lease
from roost.store.mariadb.link import DEFAULTS, close_connection, connect, read_history
from roost.store.mariadb.script import fill_in, literal
from roost.store.mariadb.versions.read_schema import read_schema
from roost.store.mariadb.writers import read_vector
from roost.store.rules.codec import decode_writes, pack_writes
from roost.store.rules.feed.visible_changes import VisibleChanges, find_base, find_mark
from roost.store.rules.prune import Snapshot
from roost.store.rules.vector import ChangeKey, Found, Missing, Vector, is_whole
from roost.store.servers.server_link import History

LEASE = "snapshot"  # of the process that writes a snapshot, and of pruning
# Parts to delete per call.
_DROPPED_PER_CALL = 8
_PARTS_AT_ONCE = 8
_CHANGES_AT_ONCE = 1000
POSITION = "SELECT coalesce(max(position), 0) FROM feed"
_HEADS = "SELECT position, seen FROM snapshot WHERE part = 0 ORDER BY position DESC"
_FOUND = "SELECT writer, count(*), min(seq), max(seq), max(body = '') FROM feed WHERE {spans} GROUP BY writer"
_CHANGES = """
SELECT position, body FROM feed
WHERE position > {{after}} AND body <> ''
  AND ({spans} OR (writer > {low} AND writer <= {high} AND writer NOT IN {writers}))
ORDER BY position"""
_OWN_WRITERS = "SELECT id FROM writer WHERE process = ?"
_OWN = "SELECT min(position) FROM feed WHERE writer = {writer} AND seq > {seq} AND body <> ''"
_IS_NEWEST = f"SELECT 1 FROM snapshot WHERE part = 0 AND position = ({POSITION})"  # noqa: S608  # our text
_PART = """
INSERT INTO snapshot (position, part, made_at_s, seen, body) VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE made_at_s = VALUES(made_at_s), seen = VALUES(seen), body = VALUES(body)"""
# Another process may delete parts meanwhile: write the head only if all of them exist.
_HEAD = """
INSERT INTO snapshot (position, part, made_at_s, seen, body)
SELECT ?, 0, ?, ?, '' FROM (SELECT 1) AS one
WHERE (SELECT count(*) FROM snapshot WHERE position = ? AND part > 0 AND seen = ?) = ?"""
# ``length(body)`` would read the bodies.
_SNAPSHOTS = """
SELECT position, max(CASE WHEN part = 0 THEN seen END), max(made_at_s), sum(size)
FROM snapshot GROUP BY position ORDER BY position"""
_INCOMPLETE = """
SELECT position, part FROM snapshot s
WHERE NOT EXISTS (SELECT 1 FROM snapshot h WHERE h.position = s.position AND h.part = 0) LIMIT ?"""


def load(
    url: str, *, deadline_s: float = DEFAULTS.bulk_deadline_s, columns: Path | None = None
) -> tuple[History, Vector, LoadedDatabase]:
    """Return the history, the changes up to now, and the content after them; see ``Store.load``.

    It reads on its own connection, so commits continue meanwhile.

    Args:
        url: see ``address``.
        deadline_s: of each answer.
        columns: path of the column file; None: read all rows.
    """
    with _open_view(url, deadline_s=deadline_s) as (connection, history, view):
        cached = read_cached(columns, view)
        if cached is None:
            loaded = LoadedDatabase(view.base.position, _parts_of(connection))
        else:
            close_connection(connection)
            loaded = LoadedDatabase(view.base.position, cached.parts, cached.later, is_cached=True)
    return history, view.vector, loaded


def load_columns(url: str) -> tuple[ColumnBase, Iterator[Part]]:
    """See ``Database.load_columns``."""
    with _open_view(url, deadline_s=DEFAULTS.bulk_deadline_s) as (connection, _, view):
        return view.base, _parts_of(connection)


@contextmanager
def _open_view(url: str, *, deadline_s: float) -> Iterator[tuple[Connection, History, VectorView]]:
    """Yield a connection for reads as of one moment; after an error, close it."""
    connection = connect_reader(url, deadline_s=deadline_s)
    try:
        with translate_errors():
            history, vector = read_history(connection), read_vector(connection)
            ((position,),) = connection.execute(POSITION).rows
            yield (
                connection,
                history,
                VectorView(
                    lambda text: connection.execute(text).rows,
                    partial(read_beyond, connection),
                    vector=vector,
                    position=position,
                    schema=read_schema(connection).version,
                    epoch=history.epoch,
                ),
            )
    except BaseException:
        connection.drop()
        raise


def _parts_of(connection: Connection) -> Iterator[Part]:
    return closing_after(connection, parts_of(lambda table: scan(connection, table)))


def past(
    url: str, text: str, *, after: FeedMark | None = None, deadline_s: float = DEFAULTS.bulk_deadline_s
) -> Past | None:
    """See ``Store.past``.

    Args:
        text: the visible changes.
    """
    visible = VisibleChanges.from_text(text)
    connection = connect_reader(url, deadline_s=deadline_s)
    try:
        with translate_errors():
            are_stored = partial(_are_stored, connection)
            base = find_base(connection.execute(_HEADS).rows, visible.vector, are_stored)
            if base is None:
                close_connection(connection)
                return None
            known = None if after is None else find_mark(after, visible.vector, are_stored)
            own = _find_own(connection, visible)
    except BaseException:
        connection.drop()
        raise
    base_position, base_vector = base if known is None else (None, known)
    missing = visible.vector.missing_in(base_vector)
    return Past(
        closing_after(connection, _writes_of(connection, base_position, missing)), own, is_after=known is not None
    )


def _are_stored(connection: Connection, missing: Missing) -> bool:
    """Return whether the feed has all changes of some spans; a failover or pruning may have deleted some."""
    rows = connection.execute(_FOUND.format(spans=_spans(missing))).rows
    found = {row[0]: Found(row[1], row[2], row[3], bool(row[4])) for row in rows}
    return all(is_whole(span, found.get(span.writer)) for span in missing.spans)


def _spans(missing: Missing) -> str:
    """Return a condition for the changes of the spans."""
    spans = (
        f"(writer = {span.writer} AND seq > {span.after}{'' if span.until is None else f' AND seq <= {span.until}'})"
        for span in missing.spans
    )
    return f"({' OR '.join(spans) or 'FALSE'})"


def _find_own(connection: Connection, visible: VisibleChanges) -> list[Write]:
    """Return the first change of the process after a decision, the one with the decision."""
    rows = connection.execute(fill_in(_OWN_WRITERS, (visible.process,))).rows
    last = visible.last_own(writer for (writer,) in rows)
    positions = [
        position
        for writer, seq in last.items()
        for (position,) in connection.execute(_OWN.format(writer=writer, seq=seq)).rows
        if position is not None
    ]
    if not positions:
        return []
    ((body,),) = connection.execute(f"SELECT body FROM feed WHERE position = {min(positions)}").rows  # noqa: S608
    return decode_writes(body)


def _writes_of(connection: Connection, base_position: int | None, missing: Missing) -> Iterator[Write]:
    """Yield the content of a snapshot, and some changes; without a position, the changes alone."""
    if base_position is not None:
        parts = f"SELECT part, body FROM snapshot WHERE position = {base_position} AND part > {{after}} ORDER BY part"  # noqa: S608
        for part, body in pages(connection, parts, at_once=_PARTS_AT_ONCE):
            if part > 0:
                yield from decode_writes(body)
    changes = _CHANGES.format(
        spans=_spans(missing),
        low=missing.high[0],
        high=missing.high[1],
        writers=literal([span.writer for span in missing.spans] or [-1]),
    )
    for _, body in pages(connection, changes, at_once=_CHANGES_AT_ONCE):
        yield from decode_writes(body)


def write_snapshot(url: str) -> bool:
    """Write a snapshot of a database, beside its processes; return whether it was written.

    Skip it if another process is writing one. Each part has its own transaction. If the process is killed, an
    incomplete snapshot remains: parts without a head.
    """
    writer = connect(url)
    try:
        lease = Lease(writer, LEASE)
        if not lease.take():
            return False
        try:
            with translate_errors():
                return _write(url, writer, lease)
        finally:
            if writer.open:
                lease.release()
    finally:
        close_connection(writer)


def _write(url: str, writer: Connection, lease: Lease) -> bool:
    if writer.execute(_IS_NEWEST, is_synced=True).rows:
        return False
    made_at_s, count = time.time(), 0
    history, vector, loaded = load(url)
    seen = f"{vector.to_text()} {history.timeline}"
    for part, body in enumerate(pack_writes(loaded.writes), start=1):
        if not lease.renew():
            return False
        writer.execute(fill_in(_PART, (loaded.position, part, made_at_s, seen, body)))
        count = part
    position = loaded.position
    return (
        lease.renew()
        and writer.execute(fill_in(_HEAD, (position, made_at_s, seen, position, seen, count))).row_count == 1
    )


def snapshots(connection: Connection) -> tuple[list[Snapshot], Callable[[ChangeKey], int]]:
    """Return all snapshots, complete or not, and a function for the mark of a change.

    The mark is the number of the first complete snapshot with the change.
    """
    found, heads = list[Snapshot](), list[Vector]()
    for position, seen, made_at_s, size in connection.execute(_SNAPSHOTS).rows:
        if seen is not None:
            heads.append(Vector.from_text(seen.split(" ")[0]))
        found.append(Snapshot(position, len(heads), made_at_s, size, seen is not None))

    def mark_of(key: ChangeKey) -> int:
        return 1 + bisect_left(heads, True, key=lambda head: head.contains(key.writer, key.seq))

    return found, mark_of


def drop_incomplete(connection: Connection) -> None:
    """Delete some parts of incomplete snapshots; the caller has the lease, so no process is writing one."""
    rows = connection.execute(fill_in(_INCOMPLETE, (_DROPPED_PER_CALL,))).rows
    if rows:
        connection.execute(f"DELETE FROM snapshot WHERE (position, part) IN {literal(rows)}")  # noqa: S608  # numbers
