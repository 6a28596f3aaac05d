"""Filter and weigh the same hosts with Nova's rules and with Roost's, in one run: ``python -m bench.peers.rules``."""

import argparse
import gc
import json
import random
import statistics
import time
from typing import Any

import msgspec

from bench.peers.__main__ import to_text
from bench.peers.rows import Line
from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.model.settings.roost_settings import Pci, Scheduler
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.query.pci_requests import PciAliases
from roost.scheduler.registry import options_of
from roost.scheduler.shape.shape_cache import ShapeCache
from tests.differential.scheduler import nova
from tests.differential.scheduler.hosts import uuid_of
from tests.differential.scheduler.pairs import whole
from tests.differential.scheduler.subject import FILTERS, NOW_S, WEIGHERS, Columns

DEFAULTS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)
GPU = {"name": "gpu", "vendor_id": "10de", "product_id": "1db6", "device_type": "type-PCI"}
WISHES = {"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "pci_passthrough:alias": "gpu:1"}
# How many times as fast Roost is to be, by hosts: with the rules of a new installation, and with all that both have.
WANTED = {1_000: (500, 100), 10_000: (5_000, 200)}


def world(hosts: int, *, has_devices: bool) -> dict[str, Any]:
    """Make hosts that pass most rules, and differ in what is free; with memory nodes and devices if so wanted."""
    chance = random.Random(1)
    made = [
        {
            "vcpus_total": 64,
            "cpu_allocation_ratio": 4.0,
            "vcpus_used": chance.randrange(64),
            "total_usable_ram_mb": 262_144,
            "free_ram_mb": chance.randrange(16_384, 262_144),
            "total_usable_disk_gb": 4_000,
            "free_disk_mb": chance.randrange(102_400, 4_096_000),
            "num_instances": chance.randrange(40),
            "num_io_ops": chance.randrange(6),
            "hypervisor_type": "QEMU",
            "hypervisor_version": 8_002_002,
            "cpu_info": {"arch": "x86_64", "features": ["aes", "avx2"]},
            "supported_instances": [["x86_64", "kvm", "hvm"]],
            "instances": [uuid_of("instance", 100 * number)],
            "aggregates": ["all"],
            **(devices(chance) if has_devices else {}),
        }
        for number in range(hosts)
    ]
    extra_specs = {"capabilities:hypervisor_type": "QEMU", **(WISHES if has_devices else {})}
    flavor = {"vcpus": 4, "memory_mb": 4096, "extra_specs": extra_specs}
    image = {"id": uuid_of("image", 1), "properties": {"hw_architecture": "x86_64"}}
    request, options = {"flavor": flavor, "image": image}, {"pci": {"alias": [json.dumps(GPU)]}}
    return whole({"aggregates": {"all": {}}, "hosts": made, "request": request, "options": options})


def devices(chance: random.Random) -> dict[str, Any]:
    """Give a host two memory nodes of 16 cores, some threads taken anywhere, and up to three devices near each."""
    cells = []
    for number in range(2):
        siblings = [[32 * number + core, 32 * number + 16 + core] for core in range(16)]
        everyone = [cpu for core in siblings for cpu in core]
        tenants = chance.randrange(9)  # of 4 processors and 4 GiB each
        pages = [
            {"size_kb": 4, "total": 2**25, "used": 0},
            {"size_kb": 2048, "total": 1024, "used": 64 * tenants},
        ]
        cells.append(
            {
                "id": number,
                "socket": number,
                "cpuset": everyone,
                "pcpuset": everyone,
                "siblings": siblings,
                "pinned_cpus": chance.sample(everyone, 4 * tenants),
                "memory": 2**17,
                "memory_usage": 4096 * tenants,
                "mempages": pages,
            }
        )
    pools = [
        {
            "vendor_id": GPU["vendor_id"],
            "product_id": GPU["product_id"],
            "numa_node": number,
            "count": chance.randrange(4),
            "tags": {"dev_type": GPU["device_type"]},
        }
        for number in range(2)
    ]
    return {"numa_cells": cells, "pci_pools": pools}


class Ours:
    """Roost's rules over the hosts of a pair, asked about a shape that they never saw each time."""

    def __init__(self, pair: dict[str, Any], filters: list[str], weighers: list[str]) -> None:
        self._columns = Columns(pair)
        self._columns.state.hosts.are_self_reported = (
            True  # What hosts have is what the pair says; no provider is searched.
        )
        made = [
            [kinds[name](options_of(kinds[name], {})) for name in names]
            for kinds, names in ((FILTERS, filters), (WEIGHERS, weighers))
        ]
        self._shapes = ShapeCache(
            Rules(filters=tuple(made[0]), weighers=tuple(made[1])),
            default_zone="nova",
            settings=Scheduler(),
            aliases=PciAliases(Pci(alias=tuple(pair["options"]["pci"]["alias"]))),
        )
        self._asked = 0
        gc.collect()
        gc.freeze()  # as the product does with what it loaded

    def time_ms(self, repeats: int) -> list[float]:
        """Return how long ranking takes, time and again."""
        told, times = self._columns.spec.request, []
        for at in range(self._asked, self._asked + repeats):
            # Another size each time, and another wish, so that nothing of the shape is known.
            specs = {**told.flavor.extra_specs, "capabilities:hypervisor_version": f">= {at}"}
            memory_mb = told.flavor.memory_mb + 2 * at  # the same on either node
            flavor: Flavor = msgspec.structs.replace(told.flavor, memory_mb=memory_mb, extra_specs=specs)
            request: Request = msgspec.structs.replace(told, flavor=flavor)
            begun = time.perf_counter()
            ranked = self._shapes.get(request, state=self._columns.state, now_s=NOW_S).rank(3)
            times.append((time.perf_counter() - begun) * 1000)
            assert ranked.left > len(self._columns.view) // 2, "most hosts are to pass"
        self._asked += repeats
        return times


def lines(hosts: int, wanted: tuple[float, float], *, rounds: int) -> list[Line]:
    """Measure the default rules and all rules over so many hosts, both sides in turn."""
    found = []
    with nova.Nova() as reference:
        everything = sorted(reference.filters.keys() & FILTERS.keys())
        weighers = sorted(reference.weighers.keys() & WEIGHERS.keys())
        for name, filters, ratio in (("default", list(DEFAULTS), wanted[0]), ("all", everything, wanted[1])):
            pair = world(hosts, has_devices=name == "all")
            ours, theirs_ms, ours_ms = Ours(pair, filters, weighers), [], []
            for _ in range(rounds):
                theirs_ms += reference.time_ms({**pair, "enabled": filters}, weighers=weighers, repeats=1)
                ours_ms += ours.time_ms(33)
            kind = ", NUMA and PCI" if name == "all" else ""
            row = f"{name} filters ({len(filters)}), weighers ({len(weighers)}){kind}, {hosts:,} hosts, new shape"
            theirs, mine = statistics.median(theirs_ms), statistics.median(ours_ms)
            found.append(Line(row=row, theirs_ms=theirs, ours_ms=mine, wanted=ratio))
    return found


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.rules", description=__doc__)
    parser.add_argument("--hosts", nargs="+", type=int, default=list(WANTED), help="sizes of the fleet")
    parser.add_argument("--rounds", type=int, default=5, help="in which both sides are asked in turn")
    arguments = parser.parse_args()
    if nova.python() is None:
        parser.error(nova.HOW_TO_INSTALL)
    print(f"{'row':70} {'Nova ms':>12} {'Roost ms':>10} {'ratio':>8} {'wanted':>7}")
    for hosts in arguments.hosts:
        for line in lines(hosts, WANTED.get(hosts, (0, 0)), rounds=arguments.rounds):
            print(to_text(line), flush=True)


if __name__ == "__main__":
    main()
