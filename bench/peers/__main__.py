"""Ask the reference and Roost the same, and print how many times as fast Roost is: ``python -m bench.peers``."""

import argparse
import tempfile
from pathlib import Path

import msgspec

from bench import machine
from bench.peers import rows, servers
from bench.peers.rows import PARTS, SMALL, Line, Size


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found, as ``--json`` writes it."""

    machine: machine.Machine
    lines: list[Line]


def to_text(line: Line) -> str:
    """Return a line of the table."""
    theirs = "" if line.theirs_ms is None else f"{line.theirs_ms:,.2f}"
    ratio = "" if line.ratio is None else f"{line.ratio:,.1f}"
    verdict = "yes" if line.is_reached else "no"
    return (
        f"{line.row:70} {theirs:>12} {line.ours_ms:>10,.2f} {ratio:>8} {line.wanted:>7,.0f} {verdict:3} {line.note}"
    ).rstrip()


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS, help="parts of the table")
    parser.add_argument("--small", action="store_true", help="tiny worlds: does it run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    arguments = parser.parse_args()
    servers.prepare()
    with tempfile.TemporaryDirectory() as folder:
        found = machine.describe(Path(folder))
    print(f"{machine.to_text(found)}\n")
    print(f"{'row':70} {'upstream ms':>12} {'Roost ms':>10} {'ratio':>8} {'wanted':>7}")
    lines: list[rows.Line] = []
    for part in arguments.only:
        for line in PARTS[part](SMALL if arguments.small else Size()):
            print(to_text(line), flush=True)
            lines.append(line)
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(Run(machine=found, lines=lines)), indent=1))


if __name__ == "__main__":
    main()
