"""Run the workloads and print one table against the budgets: ``python -m bench.run``."""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench import deciding, explaining, machine, searching, serving, starting, store, table, workloads
from bench.databases import Databases, Skipped
from bench.machine import Machine
from bench.table import Line
from bench.workloads import Figures, Workload

KINDS: dict[str, Callable[[Workload, Databases], Figures]] = {
    "decide": deciding.decide,
    "answer": deciding.answer,
    "arrivals": deciding.arrivals,
    "throughput": deciding.throughput,
    "served": serving.served,
    "explain": explaining.explain,
    "candidates": searching.candidates,
    "devices": searching.devices,
    "claims": store.claims,
    "opening": starting.opening,
    "freshness": starting.freshness,
    "start": starting.start,
}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found, as ``--json`` writes it."""

    machine: Machine
    lines: list[Line]
    skipped: dict[str, str] = {}  # row -> why


def measure(chosen: list[Workload], databases: Databases, *, show: Callable[[str], None], repeat: int = 0) -> Run:
    """Run workloads, each as often as it says or as ``repeat`` does, and show the table as it grows."""
    found = machine.describe(databases.folder)
    show(machine.to_text(found))
    show(f"\n{table.HEADER}")
    lines: list[Line] = []
    skipped: dict[str, str] = {}
    for workload in chosen:
        try:
            repetitions = [KINDS[workload.kind](workload, databases) for _ in range(repeat or workload.repeat)]
        except Skipped as reason:
            skipped[workload.name] = str(reason)
            show(f"{workload.name:24} skipped: {reason}")
            continue
        own = table.lines_of(workload, repetitions, found)
        for line in own:
            show(table.to_text(line))
        lines += own
    return Run(machine=found, lines=lines, skipped=skipped)


def select(known: list[Workload], names: list[str]) -> list[Workload]:
    """Return the workloads whose name is, or begins with, one of the names; all of them if there are no names."""
    unknown = [name for name in names if not any(each.name.startswith(name) for each in known)]
    if unknown:
        raise SystemExit(f"no workload is named {', '.join(unknown)}; there are {', '.join(w.name for w in known)}")
    return [each for each in known if not names or any(each.name.startswith(name) for name in names)]


def show_comparison(run: Run, path: Path) -> None:
    """Print this run in units of another one."""
    other = msgspec.json.decode(path.read_bytes(), type=Run)
    speed = run.machine.calibration_ms / other.machine.calibration_ms
    print(f"\nin units of commit {other.machine.commit}, times and rates scaled by the calibration loop ({speed:.2f})")
    print(f"{'row':24} {'figure':22} {'best':>8} {'median':>8}")
    print("\n".join(table.comparison(run.lines, other.lines, speed=speed)))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="rows with these names or beginnings")
    parser.add_argument("--small", action="store_true", help="tiny workloads, once each: do they run?")
    parser.add_argument("--repeat", type=int, default=0, metavar="N", help="repetitions instead of the workload's own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with a run written by --json")
    parser.add_argument("--folder", type=Path, help="where databases are made; default: the place for temporary files")
    parser.add_argument("--postgresql", default="", metavar="URL", help="use this server; default: start one")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    options = parser.parse_args()
    chosen = select(workloads.load(small=options.small), options.only)
    if options.list:
        print("\n".join(f"{each.name:24} {each.about}" for each in chosen))
        return
    with tempfile.TemporaryDirectory(prefix="roost-bench-", dir=options.folder) as folder:
        databases = Databases(Path(folder), postgresql=options.postgresql)
        try:
            run = measure(chosen, databases, show=lambda text: print(text, flush=True), repeat=options.repeat)
        finally:
            databases.close()
    print(f"load at the end: {os.getloadavg()[0]:.2f}")
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(run)))
    if options.against is not None:
        show_comparison(run, options.against)


if __name__ == "__main__":
    main()
