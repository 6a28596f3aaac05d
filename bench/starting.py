"""Starting and staying fresh: new processes, opened databases, memory, and the check before every answer."""

import json
import subprocess
import sys
import time
from pathlib import Path

from bench.databases import Databases
from bench.workloads import Figures, Workload, in_ms, percentile

_ROOT = Path(__file__).parents[1]
_HELP = "import sys; sys.argv = ['roost', '--help']; from roost.cli import main; main()"


def opening(workload: Workload, databases: Databases) -> Figures:
    """Measure how long a new process needs for a fleet, and what it holds then."""
    path = databases.template(workload.fleet, workload.hosts)
    return json.loads(_run("-m", "bench.opened", str(path)))


def freshness(workload: Workload, databases: Databases) -> Figures:
    """Measure the check for what other processes committed, when there is nothing."""
    times, trips = [], []
    with databases.roost(workload) as (roost, _), databases.writers(workload.writers):
        for _ in range(workload.requests):
            start = time.perf_counter()
            roost.placement.refresh()
            times.append(time.perf_counter() - start)
    figures = in_ms(times)
    if workload.store == "postgresql":
        import psycopg

        with psycopg.connect(databases.postgresql_url(), autocommit=True) as connection:
            for _ in range(workload.requests):
                start = time.perf_counter()
                connection.execute("SELECT 1").fetchone()
                trips.append(time.perf_counter() - start)
        figures["trips"] = percentile(times, 0.5) / percentile(trips, 0.5)
    return figures


def start(workload: Workload, _: Databases) -> Figures:
    """Measure the import of all names of the product, and of its command line."""
    wanted = {"import_app_ms": "from roost.app import *", "help_ms": _HELP}
    empty = min(_timed("pass") for _ in range(workload.requests))
    return {name: (min(_timed(code) for _ in range(workload.requests)) - empty) * 1e3 for name, code in wanted.items()}


def _timed(code: str) -> float:
    began = time.perf_counter()
    _run("-c", code)
    return time.perf_counter() - began


def _run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
