"""Which decisions and changes go when there are too many of them."""

from collections.abc import Mapping, Sequence


def choose_doomed(
    oldest: Sequence[tuple[str, int, float, int]], kept_bytes: int, *, older_than_s: float, max_bytes: int
) -> tuple[dict[str, list[tuple[int]]], int]:
    """Choose what to delete.

    Args:
        oldest: the oldest decisions and changes: table, number, when it was written, bytes.
        kept_bytes: bytes of all decisions and changes.
        older_than_s: all that was written before this moment goes.
        max_bytes: the oldest go until no more than this is left.

    Returns:
        The numbers by table, and the bytes that are left.
    """
    doomed: dict[str, list[tuple[int]]] = {"decision": [], "feed": []}
    for table, number, written_at_s, size in sorted(oldest, key=lambda row: (row[2], row[1])):
        if written_at_s < older_than_s or kept_bytes > max_bytes:
            doomed[table].append((number,))
            kept_bytes -= size
    return doomed, kept_bytes


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

    def uncounted(self, table: str) -> int:
        """Return the newest number that is still to be counted; 0: all are."""
        return self._uncounted[table]

    def count(self, table: str, rows: int, size: int, *, lowest: int | None) -> None:
        """Count rows that were there before: all from ``lowest`` to ``uncounted``; None: there were no more."""
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
