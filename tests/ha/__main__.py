"""``make ha``: faults of a replicated database under Roost, one after the other, with clients that claim and release.

Exits with 1 if a write is lost, doubled, resurrected or different, if the columns of a process differ from the tables,
if the audit has findings, if an outage is longer than its target, or if Roost adds more than half a second to an outage
that allows no errors.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import msgspec
from rich.console import Console

from tests.ha import galera_nodes, node_processes, patroni
from tests.ha.ha_run import run_faults
from tests.ha.report import Result, details_of, problems_of, table_of

_CLUSTERS = {"patroni": patroni, "galera": galera_nodes}
_HOLD_S, _SHORT_S = 40.0, 28.0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    found = argparse.ArgumentParser(prog="python -m tests.ha", description=__doc__.partition("\n")[0])
    found.add_argument("--only", choices=tuple(_CLUSTERS), help="only this cluster")
    found.add_argument("--faults", metavar="NAME,…", help="only these faults, in this order")
    found.add_argument("--short", action="store_true", help="faults that do not end by themselves last 28 s, not 40")
    found.add_argument("--keep", action="store_true", help="keep the files and logs of the clusters")
    found.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    return found


def main() -> int:
    """Run the faults of all clusters, and print one table."""
    arguments = parser().parse_args()
    signal.signal(signal.SIGTERM, _leave)
    names = [arguments.only] if arguments.only else list(_CLUSTERS)
    results: list[Result] = []
    problems: list[str] = []
    try:
        for name in names:
            if problem := _CLUSTERS[name].missing():
                problems.append(f"{name}: {problem}")
                continue
            for result in _run(name, arguments):
                results.append(result)
                print("\n".join(problems_of(result)) or f"{result.cluster}: {result.fault}: no problems", flush=True)
    except KeyboardInterrupt:
        problems.append("interrupted")
    Console(width=205).print(table_of(results))
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    problems += [text for each in results for text in problems_of(each)]
    print("\n".join([*details_of(results), *problems]), file=sys.stderr)
    return bool(problems)


def _run(name: str, arguments: argparse.Namespace) -> Iterator[Result]:
    # Under /tmp, because the path of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="roost-ha-", dir="/tmp"))
    try:
        cluster = _CLUSTERS[name].open_cluster(folder, hold_s=_SHORT_S if arguments.short else _HOLD_S)
        faults = {fault.name: fault for fault in cluster.faults()}
        chosen = arguments.faults.split(",") if arguments.faults else list(faults)
        if unknown := set(chosen) - set(faults):
            sys.exit(f"unknown faults: {', '.join(sorted(unknown))}; known are {', '.join(faults)}")
        yield from run_faults(cluster, folder, [faults[each] for each in chosen], report=_print)
    finally:
        node_processes.end(folder)
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _print(line: str) -> None:
    print(line, flush=True)


def _leave(number: int, _frame: FrameType | None) -> None:
    """End with the blocks that end all processes."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
