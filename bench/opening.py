"""What a start costs, by phase: ``python -m bench.opening --hosts 100000``.

A process of its own opens the fleet, and decides. Another one loads it again and measures the phases of loading.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.databases import Databases, Skipped
from bench.workloads import Figures
from roost.store.backup import backup, restore

_ROOT = Path(__file__).parents[1]
STORES = ("sqlite", "postgresql")


def main(hosts: int, *, stores: tuple[str, ...] = STORES, decisions: int = 2_000, folder: Path | None = None) -> None:
    """Print the figures of each store."""
    with tempfile.TemporaryDirectory() as temporary:
        databases = Databases(folder or Path(temporary))
        try:
            template = databases.template("mixed", hosts)
            for store in stores:
                try:
                    database = _copy(template, store, databases=databases, folder=Path(temporary))
                except Skipped as error:
                    print(f"{store}: skipped: {error}")
                    continue
                print(f"{hosts:,} hosts on {store}")
                _print_figures(_run(database, "--phases"))
                _print_figures(_run(database, "--decisions", str(decisions)))
        finally:
            databases.close()


def _copy(template: Path, store: str, *, databases: Databases, folder: Path) -> str:
    """Return the path or URL of a new database with the content of the template."""
    if store == "sqlite":
        copy = folder / "opened.db"
        shutil.copyfile(template, copy)
        return str(copy)
    url, file = databases.fresh_postgresql(), folder / "fleet.backup"
    backup(str(template), file, progress=_say_nothing)
    restore(url, file, may_replace=False, progress=_say_nothing)
    return url


def _say_nothing(*_: object) -> None:
    """Report no progress."""


def _run(*arguments: str) -> Figures:
    command = [sys.executable, "-m", "bench.opened", *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _print_figures(figures: Figures) -> None:
    for name, value in figures.items():
        print(f"  {name:40} {value:10.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--store", choices=STORES, action="append", help="default: both")
    parser.add_argument("--decisions", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, help="where the database of the fleet stays for the next run")
    chosen = parser.parse_args()
    main(chosen.hosts, stores=tuple(chosen.store or STORES), decisions=chosen.decisions, folder=chosen.folder)
