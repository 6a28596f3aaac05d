"""Compare two servers from the command line: ``python -m tests.differential --seed 7``."""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.differential import reference, subject
from tests.differential.duel import Duel, Outcome, Server, Side, Tally, story
from tests.differential.ladder import ladder
from tests.differential.scene import Act
from tests.differential.sequences import STEPS, sequence

SHORTENED_MAX = 5


class RunningServer:
    """A server that already runs; it cannot be emptied, so it should be empty."""

    def __init__(self, address: str) -> None:
        self.address = address

    def empty(self) -> None:
        """Do nothing."""


@contextmanager
def open_duel(arguments: argparse.Namespace) -> Iterator[Duel]:
    """Yield the two servers: the named ones, or new ones."""
    with ExitStack() as stack:
        theirs: Server = (
            RunningServer(arguments.reference) if arguments.reference else stack.enter_context(reference.Reference())
        )
        ours: Server
        if arguments.against == "reference":
            ours = stack.enter_context(reference.Reference())
        else:
            ours = RunningServer(arguments.against) if arguments.against else stack.enter_context(subject.Subject())
        duel = Duel(Side(theirs), Side(ours))
        stack.callback(duel.close)
        yield duel


def replay(outcome: Outcome, first: int, last: int) -> Act:
    """Send some requests of a sequence again."""
    for request in outcome.requests[first:last]:  # noqa: UP028  (a list cannot receive answers)
        yield request


def report(duel: Duel, outcome: Outcome, command: str, reported: set[tuple[str, ...]], *, may_shorten: bool) -> None:
    """Print each kind of fault once, with its story and the shortest sequence that shows it."""
    for fault in outcome.faults:
        if fault.kind in reported:
            continue
        reported.add(fault.kind)
        print(f"\n{story(fault, duel.subject.server.address)}\n  again: {command} --steps 0:{fault.step + 1}")
        if may_shorten and len(reported) <= SHORTENED_MAX:
            for request in duel.shorten(outcome.requests, fault):
                print(f"    {request.as_curl('$URL')}")


def main() -> int:
    """Run the seeds, print the results, and return 1 if the servers differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", type=int, action="append", help="a seed to run; may be repeated")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="run the seeds 0 to N-1")
    parser.add_argument("--ladder", action="store_true", help="run each route in each version")
    parser.add_argument("--length", type=int, default=STEPS, help="requests in each sequence")
    parser.add_argument("--steps", metavar="A:B", help="send only these steps of the seed's sequence")
    parser.add_argument("--against", metavar="URL", help="a running server; `reference` starts a second reference")
    parser.add_argument("--reference", metavar="URL", help="a running reference")
    parser.add_argument("--no-shorten", action="store_true", help="do not look for the shortest sequence")
    parser.add_argument("--counts", action="store_true", help="print the requests by route and status")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers also stop
    if not arguments.reference and reference.python() is None:
        print(reference.HOW_TO_INSTALL, file=sys.stderr)
        return 2
    seeds = (arguments.seed or []) + list(range(arguments.seeds))
    sequences: list[tuple[str, Act]] = [(f"--seed {seed}", sequence(seed, arguments.length)) for seed in seeds]
    if arguments.ladder or not sequences:
        sequences.insert(0, ("--ladder", ladder()))
    tally, faults, reported = Tally(), 0, set[tuple[str, ...]]()
    with open_duel(arguments) as duel:
        for name, act in sequences:
            outcome = duel.run(act)
            if arguments.steps:
                first, last = (int(part) for part in arguments.steps.split(":"))
                outcome = duel.run(replay(outcome, first, last))
            tally.add(outcome.tally)
            faults += len(outcome.faults)
            print(f"{name}: {outcome.tally.exchanges} exchanges, {len(outcome.faults)} unexplained", flush=True)
            command = f"python -m tests.differential {name}"
            report(duel, outcome, command, reported, may_shorten=not arguments.no_shorten)
    print(tally.text() if arguments.counts else tally.text().split("\n", tally.text().count("\n") - 1)[-1])
    for kind in sorted(reported):
        print("  ", *kind, sep="  ")
    print(f"{faults} differences are not explained, of {len(reported)} kinds")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
