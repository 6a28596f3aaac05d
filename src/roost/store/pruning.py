"""Which decisions and changes go when there are too many of them."""

from collections.abc import Sequence


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
