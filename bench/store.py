"""Measure the stores: claims a second in groups of several sizes, loading a fleet in bulk, reading it back.

Run ``python bench/store.py`` for SQLite, with ``--url postgresql://…`` for an empty PostgreSQL database.
Every claim is one consumer with three allocations on one of 10,000 providers, an instance, and 300 bytes of
evidence.
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from roost.model.journal import (
    CLASS_BITS,
    Claim,
    ConsumerRow,
    EvidenceRow,
    InstanceRow,
    InventoryRow,
    Item,
    PutAggregate,
    PutHost,
    PutInventories,
    PutMembership,
    PutProvider,
    PutTraits,
)
from roost.model.settings import Store as StoreSettings
from roost.ports import Store
from roost.store.opening import open_store

PROVIDERS = 10_000
GROUPS = {1: 1_500, 16: 10_000, 64: 30_000, 256: 40_000, 1024: 60_000}  # size -> claims measured
CONSUMERS_BEFORE = 100_000
_FACTS = msgspec.Raw(msgspec.msgpack.encode({"rack": "r1", "hypervisor_type": "QEMU", "stats": {"a": "b"}}))


def fleet(store: Store, count: int) -> Iterator[Item]:
    """Yield one item a provider: inventories, traits, aggregates and host."""
    first, first_host = store.reserve("provider", count), store.reserve("host", count)
    aggregate = store.reserve("aggregate", 1)
    yield Item((PutAggregate(aggregate, os.urandom(16), "zone", {"availability_zone": "a"}, 1),))
    for at in range(count):
        number = first + at
        inventories = [InventoryRow(one, 2**31 - 1, 0, 1, 2**31 - 1, 1, 16.0) for one in (1, 2, 3)]
        yield Item(
            (
                PutProvider(number, os.urandom(16), f"node-{number}", None, number, 1),
                PutInventories(number, 0, inventories),
                PutTraits(number, 1, [1, 2, 3, 4, 5]),
                PutMembership(number, 2, [aggregate]),
                PutHost(first_host + at, number, f"host-{number}", f"node-{number}", _FACTS, 1),
            )
        )


def claims(store: Store, count: int, *, draw: random.Random) -> list[Item]:
    """Return claims on random providers, each with its evidence."""
    first, decision = store.reserve("consumer", count), store.reserve("decision", count)
    items = []
    for at in range(count):
        number, inventory = first + at, draw.randint(1, PROVIDERS) << CLASS_BITS
        claim = Claim(
            [ConsumerRow(number, os.urandom(16), "project", "user")],
            [(number, inventory | 1, 2), (number, inventory | 2, 4096), (number, inventory | 3, 20)],
            [InstanceRow(number, 1, 1)],
        )
        row = EvidenceRow(decision + at, os.urandom(16), time.time(), "granted", "project", 1, "h", "", bytes(300))
        items.append(Item((claim,), (row,)))
    return items


def measure(store: Store) -> None:
    """Print the table."""
    draw = random.Random(1)
    items = list(fleet(store, PROVIDERS))
    start = time.perf_counter()
    for at in range(0, len(items), 1000):
        assert not any(store.commit(items[at : at + 1000]).refusals)
    print(f"{PROVIDERS:,} providers in commits of 1,000: {time.perf_counter() - start:.2f} s")
    items = claims(store, CONSUMERS_BEFORE, draw=draw)
    for at in range(0, len(items), 1000):
        store.commit(items[at : at + 1000])
    print(f"{'group':>6} {'claims/s':>9} {'CPU us/claim':>13} {'p50 ms':>8} {'p99 ms':>8}")
    for size, count in GROUPS.items():
        items, times = claims(store, count, draw=draw), []
        start, start_cpu = time.perf_counter(), time.process_time()
        for at in range(0, len(items), size):
            begin = time.perf_counter()
            committed = store.commit(items[at : at + size])
            times.append(time.perf_counter() - begin)
            assert not any(committed.refusals)
        took, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        times.sort()
        p50, p99 = times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3
        print(f"{size:>6} {count / took:>9,.0f} {cpu / count * 1e6:>13.1f} {p50:>8.2f} {p99:>8.2f}")
    start = time.perf_counter()
    writes = sum(1 for _ in store.load().writes)
    print(f"load, {writes:,} writes: {time.perf_counter() - start:.2f} s")


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="", help="an empty PostgreSQL database; default: a new SQLite file")
    parser.add_argument("--synchronous", default="FULL", choices=("FULL", "NORMAL"))
    parser.add_argument("--folder", help="where the SQLite file is made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        url = options.url or str(Path(folder) / "roost.db")
        store = open_store(url, settings=StoreSettings(synchronous=options.synchronous))
        measure(store)
        store.close()


if __name__ == "__main__":
    main()
