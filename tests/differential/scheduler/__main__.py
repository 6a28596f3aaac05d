"""Compare filters and weighers with the reference's: ``python -m tests.differential.scheduler --seeds 500``."""

import argparse
import json
import logging
import sys

from tests.differential.scheduler import nova
from tests.differential.scheduler.compare import Duel, Tally, story
from tests.differential.scheduler.pairs import pair, whole

SHORTENED_MAX = 5


def main() -> int:
    """Run the seeds, print the results, and return 1 if the two differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.scheduler", description=__doc__)
    parser.add_argument("--seed", type=int, action="append", default=[], help="a seed to run; may be repeated")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="run the seeds 0 to N-1")
    parser.add_argument("--show", action="store_true", help="print the whole pairs")
    parser.add_argument("--no-shorten", action="store_true", help="do not look for the smallest pair")
    arguments = parser.parse_args()
    if nova.python() is None:
        print(nova.HOW_TO_INSTALL, file=sys.stderr)
        return 2
    logging.getLogger("roost").setLevel(logging.ERROR)  # Host states log a warning for each invalid value.
    tally, count, reported = Tally(), 0, set[tuple[str, str, str]]()
    with nova.Nova() as reference:
        duel = Duel(reference)
        for seed in [*arguments.seed, *range(arguments.seeds)]:
            if arguments.show:
                print(json.dumps(whole(pair(seed)), indent=1, ensure_ascii=False))
            faults, compared = duel.compare(pair(seed))
            tally.add(compared)
            count += len(faults)
            for fault in faults:
                if fault.kind not in reported:
                    reported.add(fault.kind)
                    may_shorten = not arguments.no_shorten and len(reported) <= SHORTENED_MAX
                    print(story(duel, seed, fault, may_shorten=may_shorten), flush=True)
        print(tally.text())
        for name, reason in sorted(duel.skipped.items()):
            print(f"  {name:38} skipped: {reason}")
    print(f"{count} differences are not explained, of {len(reported)} kinds")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
