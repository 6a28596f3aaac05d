"""``make bed``: run Roost in a real small OpenStack, and compare it with OpenStack's own services.

Exits with 1 if anything but the choice among correct hosts differs.
"""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

import msgspec

from tests.bed import bed_run, cloud, combinations, peers
from tests.bed.scenario import run_scenario


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    found = argparse.ArgumentParser(prog="python -m tests.bed", description=__doc__.partition("\n")[0])
    commands = found.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run clouds one after the other, and compare them with the first")
    names = list(combinations.ALL)
    run.add_argument("--cloud", action="append", choices=names, help="instead of the three default ones; repeatable")
    run.add_argument("--rounds", type=int, default=0, metavar="N", help="rounds of 80 boots for 40 at once, per cloud")
    run.add_argument("--sharing", action="store_true", help="also let three schedulers share the queue")
    run.add_argument("--only-sharing", action="store_true", help="run nothing else")
    run.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    start = commands.add_parser("up", help="start a cloud, and leave it running")
    start.add_argument("folder", type=Path, help="a new folder, for its files and logs")
    start.add_argument("--placement", choices=("upstream", "roost"), required=True)
    start.add_argument("--scheduler", choices=("nova", "roost", "both"), required=True)
    for name, text in (("scenario", "run the operations in a running cloud"), ("down", "end a cloud; its files stay")):
        commands.add_parser(name, help=text).add_argument("folder", type=Path)
    return found


def main() -> int:
    """Run one command."""
    arguments = parser().parse_args()
    signal.signal(signal.SIGTERM, _leave)
    if problems := peers.problems():
        print("\n".join(problems), file=sys.stderr)
        return 1
    if arguments.command == "run":
        return _run(arguments)
    folder = arguments.folder.resolve()
    if arguments.command == "up":
        combination = combinations.Combination(placement=arguments.placement, scheduler=arguments.scheduler)
        running = cloud.start(folder, combination)
        for service in running.places.ports:
            print(f"  {service}: {running.places.url(service)}")
    elif arguments.command == "scenario":
        run_scenario(cloud.Cloud(folder))
    else:
        cloud.end(folder)
    return 0


def _run(arguments: argparse.Namespace) -> int:
    default = (combinations.REFERENCE, *combinations.SUBJECTS)
    chosen = tuple(combinations.ALL[name] for name in arguments.cloud) if arguments.cloud else default
    plan = bed_run.Plan(
        combinations=() if arguments.only_sharing else chosen,
        rounds=arguments.rounds,
        has_sharing=arguments.sharing or arguments.only_sharing,
    )
    results = bed_run.run(plan, report=lambda line: print(line, flush=True))
    print(f"\n{bed_run.show(results)}")
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    return bool(bed_run.problems_of(results))


def _leave(number: int, _frame: FrameType | None) -> None:
    """End with the blocks that end all processes."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
