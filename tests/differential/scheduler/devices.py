"""Random processors, NUMA cells and devices."""

import json
import random
from typing import Any

from tests.differential.scheduler.hosts import uuid_of

Json = dict[str, Any]

PROVIDERS = tuple(uuid_of("device", number) for number in range(3))
ALIASES: tuple[Json, ...] = (
    {"name": "gpu", "vendor_id": "10de", "product_id": "1db6", "device_type": "type-PCI"},
    {"name": "near", "vendor_id": "10de", "product_id": "1db6", "device_type": "type-PCI", "numa_policy": "required"},
    {"name": "any", "vendor_id": "10de", "product_id": "1db6", "device_type": "type-PCI", "numa_policy": "preferred"},
    {"name": "vf", "vendor_id": "8086", "product_id": "10fb", "device_type": "type-VF"},
    {"name": "pf", "vendor_id": "8086", "product_id": "10fb", "device_type": "type-PF", "numa_policy": "socket"},
)
# Extra specs that are invalid alone or always.
ODD: tuple[dict[str, str], ...] = (
    {"hw:numa_nodes": "0"},
    {"hw:numa_nodes": "3"},
    {"hw:numa_nodes": "x"},
    {"hw:mem_page_size": "2M"},
    {"hw:cpu_policy": "x"},
    {"hw:cpu_thread_policy": "x"},
    {"hw:emulator_threads_policy": "x"},
    {"hw:cpu_realtime": "yes"},
    {"hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"},
    {"hw:cpu_dedicated_mask": "0"},
    {"hw:locked_memory": "yes"},
    {"resources:PCPU": "2"},
    {"resources:VCPU": "2"},
    {"resources:PCPU": "1", "resources:VCPU": "1"},
    {"hw:numa_cpus.0": "0"},
    {"hw:pmem": "fast"},
    {"hw:numa_nodes": "1", "hw:numa_cpus.0": "0", "hw:numa_mem.0": "512"},
    {
        "hw:numa_nodes": "2",
        "hw:numa_cpus.0": "0",
        "hw:numa_cpus.1": "1",
        "hw:numa_mem.0": "256",
        "hw:numa_mem.1": "256",
    },
    {
        "hw:numa_nodes": "2",
        "hw:numa_cpus.0": "0",
        "hw:numa_cpus.1": "0",
        "hw:numa_mem.0": "256",
        "hw:numa_mem.1": "256",
    },
)
# The defaults of a cell, and of its pages.
CELL: Json = {
    "socket": None,
    "cpuset": [],
    "pcpuset": [],
    "memory": 0,
    "cpu_usage": 0,
    "memory_usage": 0,
    "siblings": [],
    "pinned_cpus": [],
    "mempages": [],
    "physnets": [],
    "tunneled": False,
}
PAGES: Json = {"size_kb": 4, "total": 0, "used": 0, "reserved": 0}


# Further values of pools and requests.
KINDS = ("type-PCI", "type-PF", "type-VF", "vdpa")
TAGS: dict[str, tuple[str, ...]] = {
    "physical_network": ("blue", "red"),
    "remote_managed": ("true", "True", "false"),
    "live_migratable": ("true", "false"),
}


def give_devices(chance: random.Random, hosts: list[Json]) -> None:
    """Add NUMA cells to most hosts, and device pools to some."""
    for host in hosts:
        if chance.random() < 0.85:
            host["numa_cells"] = cells(chance)
        if chance.random() < 0.7:
            host["pci_pools"] = [pool(chance) for _ in range(chance.choice([1, 2, 3]))]
            for each, provider in zip(host["pci_pools"], PROVIDERS, strict=False):
                if chance.random() < 0.4:  # Each pool has a different provider.
                    each["tags"]["rp_uuid"] = provider


def cells(chance: random.Random) -> list[Json]:
    """Return random cells of a host, which differ mainly in their usage."""
    count, cores, threads = chance.choice([1, 2, 4]), chance.choice([2, 4]), chance.choice([1, 2])
    is_apart = chance.random() < 0.4  # Each processor is either shared or pinned, not both.
    pages = chance.choice([0, 1, 1, 2, 2])  # number of page sizes of its cells; 0 if the host reports none
    tables = []
    for number in range(count):
        first = number * cores * threads
        siblings = [[first + core * threads + at for at in range(threads)] for core in range(cores)]
        cpus = [cpu for each in siblings for cpu in each]
        pcpuset = [cpu for each in siblings[: cores // 2] for cpu in each] if is_apart else cpus
        cpuset = [cpu for cpu in cpus if cpu not in pcpuset] if is_apart else cpus
        memory = chance.choice([1024, 2048, 4096])
        tables.append(
            {
                "id": number,
                "socket": chance.choice([number // 2, number // 2, None]),
                "cpuset": cpuset,
                "pcpuset": pcpuset,
                "memory": memory,
                "cpu_usage": chance.choice([0, 0, 1, 4, 16]),
                "memory_usage": chance.choice([0, 0, 512, 1024]),
                "siblings": siblings,
                "pinned_cpus": chance.sample(pcpuset, chance.choice([0, 0, 1, len(pcpuset) // 2])),
                "mempages": mempages(chance, memory)[int(pages == 2 and chance.random() < 0.3) : pages],
                "physnets": chance.choice([[], [], ["a"], ["b"], ["a", "b"]]),
                "tunneled": chance.random() < 0.2,
            }
        )
    return tables


def whole_cell(cell: Json, number: int) -> Json:
    """Return a cell with all defaults."""
    table = {**CELL, "id": number, **cell}
    return {**table, "mempages": [{**PAGES, **pages} for pages in table["mempages"]]}


def mempages(chance: random.Random, memory: int) -> list[Json]:
    """Return random pages of a cell, the smallest first; ``memory`` is in MiB."""
    large = {
        "size_kb": 2048,
        "total": chance.choice([256, 1024]),
        "used": chance.choice([0, 0, 100, 256]),
        "reserved": chance.choice([0, 0, 50]),
    }
    large["used"] = min(large["used"], large["total"] - large["reserved"])
    small = {"size_kb": 4, "total": memory * 256, "used": chance.choice([0, 0, 1024 * 64]), "reserved": 0}
    return [small, large]


def pool(chance: random.Random) -> Json:
    """Return a random pool of equal devices."""
    vendor, product, kind = chance.choice(
        [("10de", "1db6", "type-PCI"), ("8086", "10fb", "type-VF"), ("8086", "10fb", "type-PF")]
    )
    if chance.random() < 0.1:
        kind = "vdpa"
    tags = {name: chance.choice(values) for name, values in TAGS.items() if chance.random() < 0.3}
    return {
        "vendor_id": vendor,
        "product_id": product,
        "numa_node": chance.choice([0, 1, None]),
        "count": chance.choice([1, 2, 4]),
        "tags": {"dev_type": kind, **tags},
    }


def wish_devices(chance: random.Random, request: Json, options: Json) -> None:
    """Add random NUMA cells, pinned processors, pages or devices to a request."""
    specs = request["flavor"]["extra_specs"]
    if chance.random() < 0.3:
        physnets = chance.choice([[], ["a"], ["b"], ["a", "b"], ["c"]])
        request["network"] = {"physnets": physnets, "tunneled": chance.random() < 0.4}
    request["flavor"].update(vcpus=chance.choice([1, 2, 4]), memory_mb=chance.choice([512, 1024, 2048]))
    wishes: dict[str, tuple[str, ...]] = {
        "hw:numa_nodes": ("1", "2"),
        "hw:cpu_policy": ("dedicated", "dedicated", "shared", "mixed"),
        "hw:cpu_thread_policy": ("isolate", "require", "prefer"),
        "hw:mem_page_size": ("small", "large", "any", "2048", "2MB"),
        "hw:emulator_threads_policy": ("isolate", "share"),
        "hw:pci_numa_affinity_policy": ("required", "legacy", "preferred", "socket"),
    }
    for name, values in wishes.items():
        if chance.random() < 0.4:
            specs[name] = chance.choice(values)
    if chance.random() < 0.15:
        specs.update(chance.choice(ODD))
    if specs.get("hw:cpu_policy") == "mixed":
        specs["hw:cpu_dedicated_mask"] = chance.choice(("0", "^0", "1", "0-1"))
    elif specs.get("hw:cpu_policy") != "dedicated" and chance.random() < 0.9:
        specs.pop("hw:cpu_thread_policy", None)
        specs.pop("hw:emulator_threads_policy", None)
    if chance.random() < 0.6:
        options["pci"] = {"alias": [json.dumps(alias) for alias in ALIASES]}
        names = chance.sample([alias["name"] for alias in ALIASES], chance.choice([1, 1, 2]))
        specs["pci_passthrough:alias"] = ",".join(f"{name}:{chance.choice([1, 1, 2])}" for name in names)
    if chance.random() < 0.5:
        request["pci_requests"] = [ask(chance, number) for number in range(chance.choice([1, 1, 2]))]


def ask(chance: random.Random, number: int) -> Json:
    """Return a random device request, of a flavor or of a port."""
    vendor, product = chance.choice([("10de", "1db6"), ("8086", "10fb"), ("10DE", "1DB6"), ("8086", "10FB")])
    alternatives = []
    for _ in range(chance.choice([1, 1, 2])):
        wanted: Json = {"vendor_id": vendor, "product_id": product, "dev_type": chance.choice(KINDS)}
        names = chance.sample(sorted(wanted), chance.choice([1, 2, 3]))
        tags = {name: chance.choice(TAGS[name]) for name in TAGS if chance.random() < 0.2}
        alternatives.append({name: wanted[name] for name in names} | tags)
    return {
        "count": chance.choice([1, 1, 2]),
        "spec": alternatives,
        "request_id": uuid_of("request", number),
        "alias_name": chance.choice(["given", None]),
        "numa_policy": chance.choice([None, "legacy", "preferred"]),
    }


def map_devices(chance: random.Random, hosts: list[Json], request: Json) -> None:
    """Add candidates for the devices of a request to most hosts."""
    suffixes = [f"{each['request_id']}-{at}" for each in request.get("pci_requests", ()) for at in range(each["count"])]
    for host in hosts if suffixes else ():
        if chance.random() < 0.7:
            host["candidates"] = [
                {suffix: [chance.choice(PROVIDERS)] for suffix in suffixes} for _ in range(chance.choice([1, 2, 3]))
            ]
