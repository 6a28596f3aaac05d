"""Earlier states, for decisions of earlier versions: transactions identify their changes."""

from collections.abc import Iterator
from typing import NamedTuple

from roost.model.writes import Write
from roost.ports import Past
from roost.store.postgresql.bulk_reader import bodies, closing_after
from roost.store.postgresql.connection import Connection
from roost.store.postgresql.link import HISTORY, translate_errors
from roost.store.rules.codec import decode_writes

# Upper bound on attempts to commit between a decision and the commit of its group, far above the number in practice.
_ATTEMPTS_MAX = 2**20
# The decision must have seen all content of the snapshot: every transaction that the snapshot may contain ended before
# the decision. ``seen`` is a pg_snapshot and, after a blank, the timeline, since transaction numbers mean nothing on
# another timeline. The oldest snapshots have no timeline. They are usable while the server is on the timeline of the
# decision.
_BASE = """
SELECT position, split_part(seen, ' ', 1) FROM snapshot
WHERE part = 0 AND seen NOT LIKE 'w%%'
  AND pg_snapshot_xmax(split_part(seen, ' ', 1)::pg_snapshot) <= pg_snapshot_xmin(%s::pg_snapshot)
  AND split_part(seen, ' ', 2) = ANY (%s)
ORDER BY position DESC LIMIT 1"""
_CHANGES = """
SELECT body FROM feed
WHERE writer = 0
  AND xid >= pg_snapshot_xmin(%(base)s::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, %(base)s::pg_snapshot)
  AND (pg_visible_in_snapshot(xid, %(seen)s::pg_snapshot) OR (token > %(first)s AND token <= %(last)s))
  AND position <= %(position)s
ORDER BY position"""
_OWN = """
SELECT body FROM feed
WHERE writer = 0 AND xid >= pg_snapshot_xmin(%(seen)s::pg_snapshot) AND token > %(last)s AND token <= %(end)s
ORDER BY token LIMIT 1"""


class _Seen(NamedTuple):
    """The visible changes of a decision."""

    snapshot: str
    last: int  # token of the last own attempt to commit
    first: int  # token of the last own attempt before the snapshot
    timeline: str  # of the server at the snapshot; empty in the oldest records


def oldest_running(snapshot: str) -> int:
    """Return the oldest running transaction of a transaction snapshot: it contains all changes of older ones."""
    return int(snapshot.split(":", maxsplit=1)[0])


def past(connection: Connection, position: int, text: str) -> Past | None:
    """See ``Store.past``. Changes after the position are excluded, regardless of their transaction numbers.

    Args:
        connection: as of one moment; it is closed in the end.
        position: of the newest change.
        text: the visible changes.
    """
    snapshot, token, since, *timeline = text.split(" ")
    seen = _Seen(snapshot, int(token, 16), int(token, 16) - int(since, 16), "".join(timeline))
    with translate_errors():
        try:
            now = connection.execute(HISTORY).fetchone()
            assert now is not None
            timelines = [seen.timeline, *([""] if seen.timeline in ("", now[1]) else [])]
            base = connection.execute(_BASE, (seen.snapshot, timelines)).fetchone()
            if base is None:
                connection.close()
                return None
            values = {"seen": seen.snapshot, "last": seen.last, "end": seen.last + _ATTEMPTS_MAX}
            row = connection.execute(_OWN, values).fetchone()
            own = [] if row is None else decode_writes(row[0])
        except BaseException:
            connection.close()
            raise
    return Past(closing_after(connection, _writes_since(connection, base, seen, position=position)), own)


def _writes_since(connection: Connection, base: tuple[int, str], seen: _Seen, *, position: int) -> Iterator[Write]:
    base_position, snapshot = base
    parts = "SELECT body FROM snapshot WHERE position = %s AND part > 0 ORDER BY part"
    for body in bodies(connection, parts, (base_position,), at_once=8):
        yield from decode_writes(body)
    values = {
        "base": snapshot,
        "seen": seen.snapshot,
        "first": seen.first,
        "last": seen.last,
        "position": position,
    }
    for body in bodies(connection, _CHANGES, values, at_once=1000):
        yield from decode_writes(body)
