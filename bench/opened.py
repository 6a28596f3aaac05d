"""A process of its own that opens a database and says what that cost: ``python -m bench.opened DATABASE``.

Then it writes a column file, and another process opens the database from it; those figures begin with ``file_``.
``--phases`` measures the parts of loading instead. ``--decisions N`` also decides N requests with 1 and with 50 shapes.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from bench.databases import TimedStore
from bench.deciding import decide_on
from bench.workloads import Figures, Workload
from roost.app import Roost
from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.column import Column
from roost.engine.columns.state import State
from roost.engine.fill.state_fill import StateFill
from roost.engine.fill.table_columns import LabelColumns, Part
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.writes import Write
from roost.settings import load_settings
from roost.store.backends import database_at, is_shared, open_store
from roost.store.column_file.file_place import place_beside, place_in_folder

_MIB = 2**20
_SHAPES = (1, 50)


def resident_bytes() -> int:
    """Return what this process occupies of the machine's memory."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # not a file of ours
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_database(database: str, *, decisions: int = 0, folder: str = "") -> Figures:
    """Open a database as a server does, and decide.

    Args:
        folder: of a valid column file; empty: read all rows.
    """
    settings = load_settings(None)
    # The first pass over a million hosts may take longer than requests are given.
    scheduler = msgspec.structs.replace(settings.scheduler, search_budget_s=60.0)
    settings = msgspec.structs.replace(settings, scheduler=scheduler)
    before, start, cpu_s = resident_bytes(), time.perf_counter(), time.process_time()
    store = TimedStore(open_store(database, settings=_store_settings(folder)))
    with Roost(store, settings) as roost:
        took, cpu_s = time.perf_counter() - start, time.process_time() - cpu_s
        gc.collect()
        after, hosts = resident_bytes(), len(roost.state.hosts)
        gc.unfreeze()
        columns = sum(each.data.nbytes for each in gc.get_objects() if isinstance(each, Column))
        gc.freeze()
        per_100k = 100_000 / hosts / _MIB
        figures = {
            "open_s": took,
            "open_cpu_s": cpu_s,
            "resident_per_100k_mib": (after - before) * per_100k,
            "columns_per_100k_mib": columns * per_100k,
        }
        for shapes in _SHAPES if decisions else ():
            figures |= _decide(roost, store, shapes=shapes, decisions=decisions)
    return figures


def _store_settings(folder: str) -> StoreSettings:
    return StoreSettings(column_file=bool(folder), column_folder=folder)


def open_from_file(database: str) -> Figures:
    """Write a column file, and open the database from it in another process."""
    with tempfile.TemporaryDirectory() as folder:
        settings, cpu_s = _store_settings(folder), time.process_time()
        backend = database_at(database)
        is_file = not is_shared(database)
        path = place_beside(Path(database), settings) if is_file else place_in_folder(database, settings)
        assert path is not None
        assert backend.write_column_file(path)
        figures = {"file_write_cpu_s": time.process_time() - cpu_s, "file_mib": path.stat().st_size / _MIB}
        command = [sys.executable, "-m", "bench.opened", database, "--column-folder", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        with closing(open_store(database, settings=settings)) as store:
            assert store.load().is_cached
    return figures | {f"file_{name}": value for name, value in found.items()}


def _decide(roost: Roost, store: TimedStore, *, shapes: int, decisions: int) -> Figures:
    workload = Workload(name="opened", kind="decide", about="", shapes=shapes, requests=decisions)
    return {f"{name}_{shapes}_shapes": value for name, value in decide_on(roost, store, workload).items()}


class _Stopwatch:
    """Adds up the processor time of phases."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun_s = time.thread_time()
        yield
        self.phases[name] += time.thread_time() - begun_s

    def read(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield parts; the time to get them is the phase ``read``."""
        iterator = iter(parts)
        while True:
            with self.phase("read"):
                part = next(iterator, None)
            if part is None:
                return
            yield part


def load_in_phases(database: str) -> Figures:
    """Return the processor seconds of each phase of loading: read, add by kind, settle; and of the same row by row."""
    figures: Figures = {}
    for way in ("", "by_row_"):
        watch, state = _Stopwatch(), State()
        store = open_store(database, settings=_store_settings(""))
        try:
            loaded = store.load()
            if way:
                _apply_rows(state, loaded.writes, watch)
            else:
                _fill_columns(state, loaded.parts, watch)
        finally:
            store.close()
        del state
        gc.collect()
        figures |= {f"{way}{name}_cpu_s": seconds for name, seconds in watch.phases.items()}
        figures[f"{way}all_cpu_s"] = sum(watch.phases.values())
    return figures


def _fill_columns(state: State, parts: Iterator[Part], watch: _Stopwatch) -> None:
    filling = StateFill(state)
    gc.disable()  # as ``Current`` does
    for part in watch.read(parts):
        kind = part.kind if isinstance(part, LabelColumns) else type(part).__name__
        with watch.phase(kind):
            filling.add(part)
    with watch.phase("settle"):
        filling.finish()
    gc.enable()


def _apply_rows(state: State, writes: Iterator[Write], watch: _Stopwatch) -> None:
    for write in watch.read(writes):
        with watch.phase(type(write).__name__):
            apply(state, write)
    with watch.phase("settle"):
        recount_hosts(state)


def main() -> None:
    """Open, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database")
    parser.add_argument("--decisions", type=int, default=0)
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--column-folder", default="", help="open from the valid column file in this folder")
    arguments = parser.parse_args()
    if arguments.phases:
        figures = load_in_phases(arguments.database)
    else:
        figures = open_database(arguments.database, decisions=arguments.decisions, folder=arguments.column_folder)
        if not arguments.column_folder:
            figures |= open_from_file(arguments.database)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
