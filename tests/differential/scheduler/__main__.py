"""Compare filters and weighers with the reference's: ``python -m tests.differential.scheduler --seeds 500``."""

import argparse
import json
import sys

from tests.differential.scheduler import nova
from tests.differential.scheduler.compare import Duel, Fault, Tally, shorten
from tests.differential.scheduler.pairs import pair, whole

SHORTENED_MAX = 5


def story(duel: Duel, seed: int, fault: Fault, *, may_shorten: bool) -> str:
    """Tell a fault, with the smallest pair that shows it."""
    told = pair(seed)
    lines = [f"seed {seed}: {fault.rule} by {fault.way}: {fault.what} of host {fault.at}",
             f"  reference: {fault.theirs!r}", f"  Roost:     {fault.ours!r}"]  # fmt: skip
    if may_shorten:
        told = shorten(duel, told, fault)
        lines.append(f"  the smallest pair that shows it: {json.dumps(told, ensure_ascii=False)}")
    return "\n".join(lines)


def main() -> int:
    """Run the seeds, print what was found, and return 1 where the two differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.scheduler", description=__doc__)
    parser.add_argument("--seed", type=int, action="append", default=[], help="a seed to run; may be repeated")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="run the seeds 0 to N-1")
    parser.add_argument("--show", action="store_true", help="print the whole pairs")
    parser.add_argument("--no-shorten", action="store_true", help="do not look for the smallest pair")
    arguments = parser.parse_args()
    if nova.python() is None:
        print(nova.HOW_TO_INSTALL, file=sys.stderr)
        return 2
    tally, count, told = Tally(), 0, set[tuple[str, str, str]]()
    with nova.Nova() as reference:
        duel = Duel(reference)
        for seed in [*arguments.seed, *range(arguments.seeds)]:
            if arguments.show:
                print(json.dumps(whole(pair(seed)), indent=1, ensure_ascii=False))
            faults, compared = duel.compare(pair(seed))
            tally.add(compared)
            count += len(faults)
            for fault in faults:
                if fault.kind not in told:
                    told.add(fault.kind)
                    may_shorten = not arguments.no_shorten and len(told) <= SHORTENED_MAX
                    print(story(duel, seed, fault, may_shorten=may_shorten), flush=True)
        print(tally.text())
        for name in duel.skipped:
            print(f"  {name:38} skipped: Roost has no rule of that name")
    print(f"{count} differences are not explained, of {len(told)} kinds")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
