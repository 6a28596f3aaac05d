"""Which decisions, changes and snapshots go when there are too many of them."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_NO_AGE = -math.inf


class Row(NamedTuple):
    """One of the oldest decisions or changes."""

    table: str  # decision, feed
    number: int
    written_at_s: float
    size: int  # bytes
    mark: int = 0  # of a change: a snapshot with this mark or a higher one holds it


class Snapshot(NamedTuple):
    """A snapshot, complete or not."""

    position: int
    mark: int
    made_at_s: float
    size: int  # bytes
    is_complete: bool


class Doomed(NamedTuple):
    """What is to be deleted, by number, each in a tuple of its own; and the bytes that are left."""

    decisions: list[tuple[int]]
    changes: list[tuple[int]]
    snapshots: list[tuple[int]]
    left_bytes: int


class _Candidate(NamedTuple):
    """What may go: in the order in which it does."""

    order_s: float
    span: int  # between two snapshots; -1: a decision, which goes before what it needs
    rank: int  # a snapshot goes before the changes that it makes useful
    number: int
    age_s: float  # what is older than the bound goes; infinite: never for its age
    table: str
    size: int


def choose_doomed(
    oldest: Sequence[Row],
    snapshots: Sequence[Snapshot],
    kept_bytes: int,
    *,
    older_than_s: float,
    max_bytes: int,
    limit: int,
) -> Doomed:
    """Choose what to delete, such that what is left can still be rebuilt from the snapshots that are left.

    A state is rebuilt from the newest snapshot before it and the changes after that one. So a snapshot and the
    changes up to the next one are as old as the next one is: then the last decision that needs them was made.
    Those after the newest snapshot never go for their age; when bytes must go, its own goes before the changes.

    Args:
        oldest: the oldest decisions and changes, ``limit`` of each kind at most.
        snapshots: all there are.
        kept_bytes: bytes of all decisions, changes and snapshots.
        older_than_s: decisions that were made before this moment go.
        max_bytes: the oldest go until no more than this is left.
    """
    candidates = sorted(_candidates(oldest, snapshots))
    # Where not all of a kind were read, nothing may go before what was not read.
    horizon_s = math.inf
    for table in ("decision", "feed"):
        read = [each.order_s for each in candidates if each.table == table]
        if len(read) >= limit:
            horizon_s = min(horizon_s, read[-1])
    doomed: dict[str, list[tuple[int]]] = {"decision": [], "feed": [], "snapshot": []}
    for each in candidates:
        if each.age_s < older_than_s or (kept_bytes > max_bytes and each.order_s <= horizon_s):
            doomed[each.table].append((each.number,))
            kept_bytes -= each.size
    return Doomed(doomed["decision"], doomed["feed"], doomed["snapshot"], kept_bytes)


def _candidates(oldest: Sequence[Row], snapshots: Sequence[Snapshot]) -> list[_Candidate]:
    heads = sorted((each for each in snapshots if each.is_complete), key=lambda head: head.mark)
    marks = [head.mark for head in heads]
    # When what begins with each head is no longer needed; clocks may go back, this may not.
    ends_s: list[float] = []
    for head in heads[1:]:
        ends_s.append(max([head.made_at_s, *ends_s[-1:]]))
    newest_s = max([heads[-1].made_at_s, *ends_s[-1:]]) if heads else _NO_AGE
    found = []
    for row in oldest:
        if row.table == "decision":
            found.append(_Candidate(row.written_at_s, -1, 0, row.number, row.written_at_s, "decision", row.size))
            continue
        span = bisect_left(marks, row.mark) - 1  # The last head that does not hold it.
        if span == -1 and heads:
            order_s = age_s = _NO_AGE  # The oldest snapshot holds it.
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


class Kept:
    """The bytes of decisions and changes in a database that may hold millions.

    What was there before is counted a part at a time, the newest first, since counting all of it at once
    would keep an answer waiting for as long as reading the file takes. Until it is counted, an old row is
    taken to be as large as the counted ones are on average.

    Args:
        tops: by table, the newest number that was there before.
    """

    def __init__(self, tops: Mapping[str, int]) -> None:
        self._uncounted = dict(tops)  # table -> all rows up to this number are still to be counted
        self._rows = dict.fromkeys(tops, 0)
        self._bytes = dict.fromkeys(tops, 0)

    def last_to_count(self, table: str) -> int:
        """Return the newest number that is still to be counted; 0: all are."""
        return self._uncounted[table]

    def count(self, table: str, rows: int, size: int, *, lowest: int | None) -> None:
        """Count rows that were there before: all from ``lowest`` to ``last_to_count``; None: there were no more."""
        self.add(table, rows, size)
        self._uncounted[table] = 0 if lowest is None else lowest - 1

    def add(self, table: str, rows: int, size: int) -> None:
        """Count rows that come to be."""
        self._rows[table] += rows
        self._bytes[table] += size

    def remove(self, table: str, number: int, size: int) -> None:
        """Forget a row that is deleted."""
        if number > self._uncounted[table]:
            self.add(table, -1, -size)

    def total(self, oldest: Mapping[str, int]) -> int:
        """Return the bytes of all rows.

        Args:
            oldest: by table, the lowest number there; a table that is empty may be left out.
        """
        found = 0
        for table, top in self._uncounted.items():
            left = max(0, top + 1 - oldest.get(table, top + 1))
            mean = self._bytes[table] / self._rows[table] if self._rows[table] else 0.0
            found += self._bytes[table] + int(left * mean)
        return found
