"""The smallest sets of instances to leave a host, so as to make room on it."""

from collections.abc import Iterator, Mapping, Sequence

from roost.scheduler.plans.board import Board, Mover
from roost.scheduler.shape.shape import Shape

_Counts = tuple[int, ...]  # leaving instances of each kind


def leaving_sets(
    board: Board, shape: Shape, row: int, *, missing: Mapping[int, int], size_max: int, helped_max: int
) -> Iterator[list[Mover]]:
    """Yield the smallest sets of instances to leave a host, so as to make room for a request; few instances first.

    Of equal instances, only one is tried. No set contains a smaller sufficient set.

    Args:
        board: the columns; unchanged while a set is yielded.
        shape: of the request.
        row: the host.
        missing: missing amounts on the host, by class id.
        size_max: upper bound on the instances of a set.
        helped_max: upper bound on those of a set with an instance that has no target now.
    """
    kinds: dict[bytes, list[Mover]] = {}
    for mover in board.movers(row):
        kinds.setdefault(mover.kind, []).append(mover)
    families = list(kinds.values())
    stuck: set[int] = set()  # positions of families without a target
    sufficient: list[_Counts] = []
    for size in range(1, size_max + 1):
        left_out = stuck if size > helped_max else set()
        most = [0 if at in left_out else len(family) for at, family in enumerate(families)]
        for counts in _choose(board, families, most, missing=missing, size=size):
            if any(all(map(int.__le__, smaller, counts)) for smaller in sufficient):
                continue
            chosen = [at for at, count in enumerate(counts) if count]
            if size > helped_max:
                stuck.update(at for at in chosen if at not in stuck and not board.can_leave(families[at][0]))
                if not stuck.isdisjoint(chosen):
                    continue
            leaving = [mover for at in chosen for mover in families[at][: counts[at]]]
            with board.without(leaving):
                suffices = board.fits(shape, row)
            if suffices:
                sufficient.append(counts)
                yield leaving


def _choose(
    board: Board, families: Sequence[list[Mover]], most: Sequence[int], *, missing: Mapping[int, int], size: int
) -> Iterator[_Counts]:
    """Yield the choices of some instances to free the missing amounts; those of the first families first.

    Args:
        board: counts the steps.
        families: equal instances.
        most: by family, upper bound on the instances.
        missing: missing amounts, by class id.
        size: number of instances.
    """
    freed = [tuple(family[0].freed.get(class_id, 0) for class_id in missing) for family in families]
    # By family, the largest amounts that one instance of it or of a later family frees.
    best = [(0,) * len(missing)]
    for amounts, count in zip(reversed(freed), reversed(most), strict=True):
        best.append(tuple(map(max, best[-1], amounts)) if count else best[-1])
    best.reverse()

    def choose(at: int, lacking: tuple[int, ...], size: int) -> Iterator[_Counts]:
        if at == len(families):
            if size == 0 and all(each <= 0 for each in lacking):
                yield ()
            return
        board.spend()
        if any(amount * size < each for amount, each in zip(best[at], lacking, strict=True)):
            return
        for count in range(min(size, most[at]), -1, -1):
            left = tuple(each - count * amount for each, amount in zip(lacking, freed[at], strict=True))
            for others in choose(at + 1, left, size - count):
                yield (count, *others)

    yield from choose(0, tuple(missing.values()), size)
