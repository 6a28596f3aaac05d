"""``python -m roost.simulator.cluster``: run seeds; the exit code is 1 if one of them broke an invariant."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from roost.simulator.cluster.seed_report import format_failure, format_total
from roost.simulator.cluster.seed_runs import run_seeds, sum_results
from roost.simulator.cluster.simulation import SeedResult

_BAR = 40
_SEEDS = "0-3499,3602,3629,3640,3866,4056,5068,5111,5200,5212,6180,6219,6236,6275"


def parse_seeds(text: str) -> list[int]:
    """Parse seeds and ranges of seeds, separated by commas: ``7``, or ``0-999,4056``.

    >>> parse_seeds("7"), parse_seeds("3-5,9")
    ([7], [3, 4, 5, 9])
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run seeds and print their totals and failures."""
    parser = argparse.ArgumentParser(prog="python -m roost.simulator.cluster", description=__doc__)
    parser.add_argument("--seeds", type=parse_seeds, default=_SEEDS, help=f"seeds and ranges: {_SEEDS}")
    parser.add_argument("--kinds", default="", help="kinds of operations to request, separated by commas; empty: all")
    parser.add_argument("--jobs", type=int, default=2, help="parallel processes")
    options = parser.parse_args(arguments)
    start_s = time.perf_counter()
    kinds = tuple(filter(None, options.kinds.split(",")))
    total = sum_results(
        run_seeds(options.seeds, jobs=options.jobs, kinds=kinds), on_result=_progress_bar(len(options.seeds))
    )
    elapsed_s = time.perf_counter() - start_s
    sys.stdout.writelines(f"{line}\n" for line in format_total(total, elapsed_s=elapsed_s))
    for result in total.failures:
        sys.stdout.writelines(f"{line}\n" for line in format_failure(result, kinds=options.kinds))
    return 1 if total.failures else 0


def _progress_bar(count: int) -> Callable[[SeedResult], None]:
    """Return a callback that shows progress: a bar on a terminal, a few lines elsewhere."""
    done = broken = 0
    is_terminal = sys.stderr.isatty()

    def show(result: SeedResult) -> None:
        nonlocal done, broken
        done, broken = done + 1, broken + bool(result.invariant)
        if is_terminal:
            full = _BAR * done // count
            bar = f"\r{'█' * full}{'·' * (_BAR - full)} {done:,} of {count:,} seeds, {broken:,} broken"
            sys.stderr.write(bar + ("\n" if done == count else ""))
        elif count > 1 and done * 10 // count > (done - 1) * 10 // count:
            sys.stderr.write(f"{done:,} of {count:,} seeds, {broken:,} broken\n")
        sys.stderr.flush()

    return show


if __name__ == "__main__":
    sys.exit(main())
