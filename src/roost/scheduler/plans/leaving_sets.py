"""The smallest sets of instances to leave a host, so as to make room on it."""

from collections.abc import Iterator, Mapping, Sequence

from roost.scheduler.plans.board import Board, Mover
from roost.scheduler.shape.shape import Shape

_Counts = tuple[int, ...]  # leaving instances of each kind


def leaving_sets(
    board: Board, shape: Shape, row: int, *, missing: Mapping[int, int], size_max: int
) -> Iterator[list[Mover]]:
    """Yield the smallest sets of instances to leave a host, so as to make room for a request; few instances first.

    Of equal instances, only one is tried. No set contains a smaller sufficient set.

    Args:
        board: the columns; unchanged while a set is yielded.
        shape: of the request.
        row: the host.
        missing: missing amounts on the host, by class id.
        size_max: upper bound on the instances of a set.
    """
    kinds: dict[bytes, list[Mover]] = {}
    for mover in board.movers(row):
        kinds.setdefault(mover.kind, []).append(mover)
    families = list(kinds.values())
    sufficient: list[_Counts] = []
    for size in range(1, size_max + 1):
        for counts in _choose(board, families, missing, size=size):
            if any(all(map(int.__le__, smaller, counts)) for smaller in sufficient):
                continue
            leaving = [mover for family, count in zip(families, counts, strict=True) for mover in family[:count]]
            with board.without(leaving):
                suffices = board.fits(shape, row)
            if suffices:
                sufficient.append(counts)
                yield leaving


def _choose(
    board: Board, families: Sequence[list[Mover]], missing: Mapping[int, int], *, size: int
) -> Iterator[_Counts]:
    """Yield the choices of some instances to free the missing amounts; those of the first families first."""
    if not families:
        if size == 0 and all(lacking <= 0 for lacking in missing.values()):
            yield ()
        return
    board.spend()
    family, rest = families[0], families[1:]
    most = {class_id: max(each[0].freed.get(class_id, 0) for each in families) for class_id in missing}
    if any(most[class_id] * size < lacking for class_id, lacking in missing.items()):
        return
    for count in range(min(size, len(family)), -1, -1):
        freed = family[0].freed
        left = {class_id: lacking - count * freed.get(class_id, 0) for class_id, lacking in missing.items()}
        for others in _choose(board, rest, left, size=size - count):
            yield (count, *others)
