"""Sets of numbers as ranges: ascending pairs of the first and the last number, without overlaps."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Ranges = list[tuple[int, int]]

# Upper bound on ranges. Beyond it, the nearest ones become one, with the numbers between them.
_RANGES_MAX = 1_000


def contains(ranges: Sequence[tuple[int, int]], number: int) -> bool:
    """Return whether a number is in a set."""
    at = bisect_right(ranges, (number, 2**63)) - 1
    return at >= 0 and ranges[at][1] >= number


def add(ranges: Ranges, number: int) -> None:
    """Add a number to a set; it is usually above all others, as the numbers of decisions of one process are."""
    if ranges and number <= ranges[-1][1] + 1:
        if number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        elif not contains(ranges, number):
            ranges[:] = unite(ranges, [(number, number)])
    else:
        ranges.append((number, number))


def unite(first: Iterable[tuple[int, int]], second: Iterable[tuple[int, int]]) -> Ranges:
    """Return the numbers of two sets, in at most 1,000 ranges."""
    united: Ranges = []
    for low, high in sorted([*first, *second]):
        if united and low <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], high))
        else:
            united.append((low, high))
    while len(united) > _RANGES_MAX:
        at = min(range(1, len(united)), key=lambda at: united[at][0] - united[at - 1][1])
        united[at - 1 : at + 1] = [(united[at - 1][0], united[at][1])]
    return united
