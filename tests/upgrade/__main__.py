"""``python -m tests.upgrade``: a rolling upgrade and the way back, under load; prints a table."""

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psycopg

from tests.support.databases import postgres
from tests.upgrade.older_program import build_older
from tests.upgrade.rolling_upgrade import ORDERS, Part, Run

_HEAD = ("order", "process", "requests", "of them 409", "503", "longest outage", "other errors")


def main() -> int:
    """Run each order; return 1 if a request failed otherwise than by 503."""
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="of load for each order")
    minutes = parser.parse_args().minutes
    rows, problems = [_HEAD], list[str]()
    with tempfile.TemporaryDirectory() as name, postgres.shared_server(Path(name)) as server:
        older = build_older(Path(name) / "older")
        for order, act in ORDERS.items():
            with postgres.fresh_database(server) as url, ExitStack() as stack:
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("DROP SCHEMA public CASCADE")
                    connection.execute("CREATE SCHEMA public")
                folder = Path(name) / order
                folder.mkdir()
                parts = act(Run(url, older, folder, stack), minutes * 60)
            rows += [_row(order, part) for part in parts]
            problems += [f"{order}, {part.name}: {problem}" for part in parts for problem in part.problems]
    for row in rows:
        print("| " + " | ".join(row) + " |")
        if row is _HEAD:
            print("|---" * len(row) + "|")
    print("\n".join(problems))
    return 1 if problems else 0


def _row(order: str, part: Part) -> tuple[str, ...]:
    statuses = part.statuses
    return (
        order,
        part.name,
        f"{part.requests:,}",
        f"{statuses.get(409, 0):,}",
        f"{statuses.get(503, 0):,}",
        f"{part.outage_s_max:.2f} s",
        f"{len(part.problems):,}",
    )


if __name__ == "__main__":
    raise SystemExit(main())
