"""The limits of concurrent moves, checked against samples of open operations and against the record of all of them.

Nothing here trusts the conductor's own counts: hosts and groups of a move are those that were requested.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

Sample = frozenset[str]  # uuids of the operations that were open
Peaks = dict[str, tuple[int, str]]  # limit -> highest number of concurrent moves, and the host or group


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one operation; 0: none."""

    at_once: int
    per_host: int = 0
    per_group: int = 0

    def of(self, kind: str) -> int:
        """Return the limit of a kind: all, host or group."""
        return {"all": self.at_once, "host": self.per_host, "group": self.per_group}[kind]


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """The operation of one move, as the list of operations shows it."""

    operation: str  # uuid
    instance: str
    hosts: frozenset[str]  # source and target, if they were requested
    group: str = ""  # of the instance; empty: none
    begun_s: float
    ended_s: float | None = None  # None: it is open

    @property
    def duration_s(self) -> float:
        """How long it took; 0 if it is open."""
        return 0.0 if self.ended_s is None else self.ended_s - self.begun_s


def find_peaks(limits: Limits, moves: Sequence[Move], samples: Iterable[Sample]) -> tuple[Peaks, Peaks]:
    """Return the highest numbers of concurrent moves of one operation: in the samples, and in the record.

    Args:
        limits: of the operation; kinds without a limit are not counted.
        moves: all moves of the operation.
        samples: each has the operations that were open at some moment during one request.
    """
    by_operation = {move.operation: move for move in moves}
    seen: Peaks = {}
    for sample in find_overlaps(samples):
        counted = count_use(limits, (by_operation[uuid] for uuid in sample & by_operation.keys()))
        _raise(seen, counted, counted)
    return seen, _find_recorded_peaks(limits, moves)


def find_overlaps(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the operations that were certainly open at the same moment: those in two samples in a row.

    A list is read in several queries, so an operation of its last query may have begun after the end of one of its
    first query.
    """
    before: Sample = frozenset()
    for sample in samples:
        if both := before & sample:
            yield both
        before = sample


def find_problems(name: str, limits: Limits, peaks: Peaks) -> list[str]:
    """Return a sentence for each limit that was exceeded."""
    return [
        f"{name}: {count} moves at once in {kind} {place}".rstrip() + f", the limit is {limits.of(kind)}"
        for kind, (count, place) in peaks.items()
        if count > limits.of(kind)
    ]


def count_use(limits: Limits, moves: Iterable[Move]) -> Counter[tuple[str, str]]:
    """Count concurrent moves by limit."""
    return Counter(key for move in moves for key in _keys_of(limits, move))


def _find_recorded_peaks(limits: Limits, moves: Sequence[Move]) -> Peaks:
    """Return the highest numbers of moves at once by the times of their begins and ends."""
    begins = [(move.begun_s, 1, move) for move in moves]
    ends = [(move.ended_s, -1, move) for move in moves if move.ended_s is not None]
    use: Counter[tuple[str, str]] = Counter()
    peaks: Peaks = {}
    # At the same time, an end comes before a begin.
    for _, change, move in sorted([*begins, *ends], key=lambda each: each[:2]):
        for key in _keys_of(limits, move):
            use[key] += change
        _raise(peaks, use, _keys_of(limits, move))
    return peaks


def _raise(peaks: Peaks, use: Mapping[tuple[str, str], int], keys: Iterable[tuple[str, str]]) -> None:
    for kind, place in keys:
        if use[kind, place] > peaks.get(kind, (0, ""))[0]:
            peaks[kind] = (use[kind, place], place)


def _keys_of(limits: Limits, move: Move) -> list[tuple[str, str]]:
    """Return the limits that count a move."""
    hosts = [("host", host) for host in sorted(move.hosts)] if limits.per_host else []
    group = [("group", move.group)] if limits.per_group and move.group else []
    return [("all", ""), *hosts, *group]
