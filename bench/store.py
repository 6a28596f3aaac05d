"""The stores alone: claims in commits of several sizes.

Every claim is one consumer with three allocations on one of the providers, an instance, and 300 bytes of
evidence.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.databases import Databases
from bench.workloads import Figures, Workload, in_ms
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.model.writes import (
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
from roost.ports import Store
from roost.store.backends import open_store

_CONSUMERS_BEFORE = 10  # a provider
_FACTS = msgspec.Raw(msgspec.msgpack.encode({"rack": "r1", "hypervisor_type": "QEMU", "stats": {"a": "b"}}))
_BATCH = 1000


def claims(workload: Workload, databases: Databases) -> Figures:
    """Measure claims a second."""
    draw = random.Random("bench/claims")
    times = []
    template = None
    if workload.store.startswith("sqlite"):
        template = _template(databases.folder / f"claims-{workload.hosts}.db", workload.hosts)
    with databases.store(workload.store, template) as store:
        if template is None:
            _fill(store, workload.hosts)
        items = list(_claims(store, workload.requests, providers=workload.hosts, draw=draw))
        groups = [items[at : at + workload.group] for at in range(0, len(items), workload.group)]
        cpu_s = time.process_time()
        for group in groups:
            start = time.perf_counter()
            committed = store.commit(group)
            times.append(time.perf_counter() - start)
            assert not any(committed.refusals)
        cpu_s = time.process_time() - cpu_s
    rates = {"claims_per_s": workload.requests / sum(times), "cpu_us": cpu_s / workload.requests * 1e6}
    return rates | in_ms(times)


def _template(path: Path, providers: int) -> Path:
    if not path.exists():
        fresh = path.with_suffix(".new")
        store = open_store(fresh, settings=StoreSettings(synchronous="NORMAL"))
        _fill(store, providers)
        store.close()
        fresh.replace(path)
    return path


def _fill(store: Store, providers: int) -> None:
    """Create the fleet, and consumers that were there before."""
    items = list(_fleet(store, providers))
    draw = random.Random("bench/before")
    items += _claims(store, providers * _CONSUMERS_BEFORE, providers=providers, draw=draw)
    for at in range(0, len(items), _BATCH):
        assert not any(store.commit(items[at : at + _BATCH]).refusals)


def _fleet(store: Store, count: int) -> Iterator[Item]:
    """Yield one item a provider: inventories, traits, aggregates and host."""
    first, first_host = store.reserve("provider", count), store.reserve("host", count)
    assert first == 1, "claims name providers by their numbers"
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


def _claims(store: Store, count: int, *, providers: int, draw: random.Random) -> Iterator[Item]:
    """Yield claims on random providers, each with its evidence."""
    first, decision = store.reserve("consumer", count), store.reserve("decision", count)
    stamp = int(time.time() * 1000).to_bytes(6, "big")
    for at in range(count):
        number, inventory = first + at, draw.randint(1, providers) << CLASS_BITS
        # As the product makes them: they sort by the time they were made.
        own = stamp + at.to_bytes(4, "big") + os.urandom(6)
        claim = Claim(
            [ConsumerRow(number, own, "project", "user")],
            [(number, inventory | 1, 2), (number, inventory | 2, 4096), (number, inventory | 3, 20)],
            [InstanceRow(number, 1, 1)],
        )
        row = EvidenceRow(decision + at, own, time.time(), "granted", "project", 1, "h", "", bytes(300))
        yield Item((claim,), (row,))
