"""A process of its own that opens a database and says what that cost: ``python -m bench.opened FILE``."""

import gc
import json
import os
import sys
import time

from roost.app import Roost
from roost.engine.columns.column import Column
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.settings import load_settings
from roost.store.backends import open_store

_MIB = 2**20


def resident_bytes() -> int:
    """Return what this process occupies of the machine's memory."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # not a file of ours
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Open, count, print."""
    settings = load_settings(None)
    before, start, cpu_s = resident_bytes(), time.perf_counter(), time.process_time()
    with Roost(open_store(sys.argv[1], settings=StoreSettings()), settings) as roost:
        took, cpu_s = time.perf_counter() - start, time.process_time() - cpu_s
        gc.collect()
        after, hosts = resident_bytes(), len(roost.state.hosts)
        gc.unfreeze()
        columns = sum(each.data.nbytes for each in gc.get_objects() if isinstance(each, Column))
    per_100k = 100_000 / hosts / _MIB
    figures = {
        "open_s": took,
        "open_cpu_s": cpu_s,
        "resident_per_100k_mib": (after - before) * per_100k,
        "columns_per_100k_mib": columns * per_100k,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
