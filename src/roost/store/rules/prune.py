"""The choice of decisions, changes and snapshots to delete."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_NO_AGE = -math.inf
# Of shared databases: rows of each kind to delete per call; seconds to keep each change, since a peer reads the feed
# before each answer, and otherwise must reload.
PRUNED_PER_CALL = 5000
FEED_KEPT_S = 600


class Row(NamedTuple):
    """One of the oldest decisions or changes."""

    table: str  # decision, feed
    number: int
    written_at_s: float
    size: int  # bytes
    mark: int = 0  # of a change: snapshots with this mark or a higher one contain it


class Snapshot(NamedTuple):
    """A snapshot, complete or not."""

    position: int
    mark: int
    made_at_s: float
    size: int  # bytes
    is_complete: bool


class Deletions(NamedTuple):
    """The rows to delete, by number, one list per kind; and the remaining bytes."""

    decisions: list[tuple[int]]
    changes: list[tuple[int]]
    snapshots: list[tuple[int]]
    left_bytes: int


class _Candidate(NamedTuple):
    """A row that may be deleted; candidates sort in the order of deletion."""

    order_s: float
    # Index of the snapshot, or of the last snapshot before the change. -1: a decision, or no such snapshot.
    span: int
    rank: int  # 0, or 1 for a change: a snapshot is deleted before the changes after it
    number: int
    age_s: float  # moment from which the row's age counts; ``inf``: only the size limit deletes the row
    table: str
    size: int


def choose_deletions(
    oldest: Sequence[Row],
    snapshots: Sequence[Snapshot],
    stored_bytes: int,
    *,
    older_than_s: float,
    max_bytes: int,
    limit: int,
) -> Deletions:
    """Choose rows to delete so that all remaining decisions can be rebuilt from the remaining snapshots.

    A state is rebuilt from the newest snapshot before it and the changes since that snapshot. Decisions after the next
    snapshot need neither of them. So the age of a snapshot, and of the changes since, counts from the next snapshot.
    Changes after the newest snapshot are never deleted for their age. If the size requires their deletion, the snapshot
    is deleted before them.

    Args:
        oldest: the oldest decisions and changes, at most ``limit`` of each kind.
        snapshots: all snapshots.
        stored_bytes: size of all decisions, changes and snapshots.
        older_than_s: delete decisions made before this moment, and rows that only they need.
        max_bytes: delete the oldest rows until at most this size is left.
    """
    candidates = sorted(_candidates(oldest, snapshots))
    # If only a part of a kind was read, rows newer than that part stay: all of them if the size decides; of those too
    # old, the snapshots and changes that decisions not yet read may need.
    decision_horizon_s, change_horizon_s = (_horizon_s(candidates, table, limit) for table in ("decision", "feed"))
    horizon_s = min(decision_horizon_s, change_horizon_s)
    deletions: dict[str, list[tuple[int]]] = {"decision": [], "feed": [], "snapshot": []}
    for each in candidates:
        is_too_old = each.age_s < older_than_s and (each.table == "decision" or each.order_s <= decision_horizon_s)
        if is_too_old or (stored_bytes > max_bytes and each.order_s <= horizon_s):
            deletions[each.table].append((each.number,))
            stored_bytes -= each.size
    return Deletions(deletions["decision"], deletions["feed"], deletions["snapshot"], stored_bytes)


def _horizon_s(candidates: Sequence[_Candidate], table: str, limit: int) -> float:
    """Return the time of the last row read of a table; ``inf`` if all its rows were read."""
    read = [each.order_s for each in candidates if each.table == table]
    return read[-1] if len(read) >= limit else math.inf


def _candidates(oldest: Sequence[Row], snapshots: Sequence[Snapshot]) -> list[_Candidate]:
    heads = sorted((each for each in snapshots if each.is_complete), key=lambda head: head.mark)
    marks = [head.mark for head in heads]
    # Heads are the complete snapshots. ``ends_s`` has the time of the next head for each head but the last. Decisions
    # after this time do not need the head and its changes. The times never fall, even if a clock goes back.
    ends_s: list[float] = []
    for head in heads[1:]:
        ends_s.append(max([head.made_at_s, *ends_s[-1:]]))
    newest_s = max([heads[-1].made_at_s, *ends_s[-1:]]) if heads else _NO_AGE
    found = []
    for row in oldest:
        if row.table == "decision":
            found.append(_Candidate(row.written_at_s, -1, 0, row.number, row.written_at_s, "decision", row.size))
            continue
        span = bisect_left(marks, row.mark) - 1  # The last head without this change.
        if span == -1 and heads:
            order_s = age_s = _NO_AGE  # The oldest snapshot contains this change.
        elif span < len(ends_s) and heads:
            order_s = age_s = ends_s[span]
        else:
            order_s = max(row.written_at_s, newest_s)
            age_s = math.inf if heads else row.written_at_s
        found.append(_Candidate(order_s, span, 1, row.number, age_s, "feed", row.size))
    for span, head in enumerate(heads):
        is_newest = span == len(ends_s)
        order_s = newest_s if is_newest else ends_s[span]
        age_s = math.inf if is_newest else order_s
        found.append(_Candidate(order_s, span, 0, head.position, age_s, "snapshot", head.size))
    return found


class StoredSize:
    """The size of all decisions and changes of a database, estimated until all are counted.

    Old rows are counted in parts, newest first, since a full count of millions reads the whole file and delays answers.
    An uncounted row is assumed to have the average size of the counted ones.

    Args:
        newest: by table, the newest number at the start.
    """

    def __init__(self, newest: Mapping[str, int]) -> None:
        self._uncounted = dict(newest)  # table -> the newest row not yet counted
        self._rows = dict.fromkeys(newest, 0)
        self._bytes = dict.fromkeys(newest, 0)

    def last_to_count(self, table: str) -> int:
        """Return the newest number not yet counted; 0: all are counted."""
        return self._uncounted[table]

    def count(self, table: str, rows: int, size: int, *, lowest: int | None) -> None:
        """Add counted old rows, from ``lowest`` to ``last_to_count``; None: there were no rows left."""
        self.add(table, rows, size)
        self._uncounted[table] = 0 if lowest is None else lowest - 1

    def add(self, table: str, rows: int, size: int) -> None:
        """Count new rows."""
        self._rows[table] += rows
        self._bytes[table] += size

    def remove(self, table: str, number: int, size: int) -> None:
        """Subtract a deleted row."""
        if number > self._uncounted[table]:
            self.add(table, -1, -size)

    def total(self, oldest: Mapping[str, int]) -> int:
        """Return the size of all rows.

        Args:
            oldest: by table, its lowest number; an empty table may be left out.
        """
        found = 0
        for table, top in self._uncounted.items():
            left = max(0, top + 1 - oldest.get(table, top + 1))
            mean = self._bytes[table] / self._rows[table] if self._rows[table] else 0.0
            found += self._bytes[table] + int(left * mean)
        return found
