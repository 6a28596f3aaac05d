"""Apply plans on many agents while processes are killed and orders fail: ``python -m bench.plan_faults``.

Servers, conductors and agents with the fake driver are processes, killed in turn with kill -9. Exits with 1 if a limit
of concurrent moves was exceeded, a move has no outcome, an instance is lost or doubled, or the audit is not clean.
"""

import argparse
import os
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import msgspec

from bench import machine
from bench.databases import Databases
from bench.plan_faults.run import Found, Line, Options, run

_ABOUT = {
    "agents": "number of agents, a multiple of the processes",
    "processes": "processes of agents",
    "instances": "number of instances",
    "at_once": "moves of a plan at once",
    "per_host": "moves at once to or from one host; of a drain, all of its moves",
    "per_group": "moves at once in one server group",
    "share": "percent of the hosts that a plan empties",
    "moves": "moves of a plan, at most",
    "drains": "hosts that are drained at the same time",
    "rounds": "how often all plans are applied at least",
    "kills": "killed processes, at least",
    "kill_from_s": "least seconds between two kills",
    "kill_to_s": "most seconds between two kills",
    "failing": "share of the calls of the driver that fail",
    "move_s": "seconds of a move",
    "hang_s": "seconds of a hanging call of the driver",
    "patience_s": "seconds until a plan counts as stuck",
    "seed": "of all random choices",
}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as ``--json`` writes it."""

    machine: machine.Machine
    database: str
    options: Options
    found: Found


def to_text(found: Found) -> str:
    """Return the figures as a table, and the problems below."""
    heads = (
        "plan",
        "moves",
        "done",
        "failed",
        "skipped",
        "at once",
        "per host",
        "per group",
        "seconds",
        "longest move",
    )
    rows = [heads, *map(_row, found.lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    kills = ", ".join(f"{count} of {kind}" for kind, count in found.kills.items())
    statuses = ", ".join(f"{count:,} {status}" for status, count in sorted(found.instances.items()))
    lines += ["", f"killed: {kills}; {found.samples:,} samples of the open operations"]
    lines += [f"settled {found.settle_s:.1f} s after the last restart; instances: {statuses}"]
    lines += [f"{count} moves: {reason}" for reason, count in found.reasons.items()]
    verdict = found.problems or ["no limit was exceeded, all moves ended, and the audit is clean"]
    return "\n".join([*lines, *verdict, *found.stories])


def _row(line: Line) -> tuple[str, ...]:
    """Return a row of the table; each limit is beside the highest number of moves at once."""
    return (
        line.name,
        *(f"{count:,}" for count in (line.moves, line.done, line.failed, line.skipped)),
        *(_peak(line, kind) for kind in ("all", "host", "group")),
        f"{line.took_s:.1f}",
        f"{line.longest_s:.1f}",
    )


def _peak(line: Line, kind: str) -> str:
    most = max(peaks.get(kind, (0, ""))[0] for peaks in (line.seen, line.recorded))
    return f"{most} of {line.limits.of(kind)}" if line.limits.of(kind) else "-"


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.plan_faults", description=__doc__)
    for field in msgspec.structs.fields(Options):
        name = f"--{field.name.replace('_', '-')}"
        parser.add_argument(name, type=field.type, default=field.default, help=f"{_ABOUT[field.name]} (%(default)s)")
    parser.add_argument("--postgresql", action="store_true", help="use PostgreSQL, two servers and a conductor")
    parser.add_argument("--database", default="", metavar="URL", help="of an empty database of PostgreSQL")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    values = vars(parser.parse_args())
    json_file, database, is_postgresql = values.pop("json"), values.pop("database"), values.pop("postgresql")
    options = Options(**values)
    with tempfile.TemporaryDirectory(prefix="roost-plan-faults-") as made, closing(Databases(Path(made))) as databases:
        described = machine.describe(Path(made))
        print(machine.to_text(described), f"seed {options.seed}", sep="\n", flush=True)
        if is_postgresql and not database:
            database = databases.postgresql_url()
        (Path(made) / "cluster").mkdir()
        found = run(options, Path(made) / "cluster", database=database, show=_show)
    print(to_text(found))
    if json_file is not None:
        kind = "PostgreSQL" if database else "SQLite"
        report = Report(machine=described, database=kind, options=options, found=found)
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    print(f"load at the end: {os.getloadavg()[0]:.2f}")
    return bool(found.problems)


def _show(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
