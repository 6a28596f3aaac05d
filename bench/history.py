"""A database with a week of decisions, to replay: ``python -m bench.history FOLDER``.

Generated requests arrive and depart on a clock of their own, which takes seven days. Then replay the record:
``roost replay --from FOLDER --config docs/policies/spread.toml --config docs/policies/pack.toml``.
"""

import argparse
from pathlib import Path

from roost.model.settings.roost_settings import Settings
from roost.product import Roost
from roost.simulator.seeded_random import SeededRandom
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from roost.store.sqlite.store import SqliteStore

_WEEK_S = 7 * 86_400.0
_START_S = 1_767_225_600.0  # 2026-01-01
_CHUNK = 16  # acts per commit


class _Clock:
    """A clock that follows the events."""

    def __init__(self) -> None:
        self.time_s = _START_S

    def now_s(self) -> float:
        return self.time_s

    def elapsed_s(self) -> float:
        return self.time_s


def main() -> None:
    """Fill a database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    recipe = Recipe(hosts=arguments.hosts, requests=arguments.requests, seed=arguments.seed)
    workload, clock = generate(recipe, Options()), _Clock()
    scale = _WEEK_S / workload.events[-1].at_s
    arguments.folder.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(arguments.folder / "roost.db")
    with Roost(store, Settings(), clock=clock, random=SeededRandom(recipe.seed)) as roost:
        roost.install(workload.fleet)
        for first in range(0, len(workload.events), _CHUNK):
            part = workload.events[first : first + _CHUNK]
            clock.time_s = _START_S + scale * part[0].at_s
            roost.work([event.act for event in part])
    print(f"{arguments.folder}: {recipe.requests:,} requests in seven days on {recipe.hosts:,} hosts")


if __name__ == "__main__":
    main()
