"""Random hosts and aggregates."""

import random
import uuid
from typing import Any

Json = dict[str, Any]


def uuid_of(kind: str, number: int) -> str:
    """Return the uuid for a kind and a number, always the same one."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {number}"))


# The defaults of a host; amounts are in MiB unless the name has another unit.
HOST: Json = {
    "cell_uuid": uuid_of("cell", 1),
    "host_ip": "192.168.1.9",
    "hypervisor_type": None,
    "hypervisor_version": None,
    "cpu_info": {},
    "supported_instances": [],
    "stats": {},
    "metrics": {},
    "vcpus_total": 8,
    "vcpus_used": 0,
    "total_usable_ram_mb": 4096,
    "free_ram_mb": 4096,
    "total_usable_disk_gb": 100,
    "free_disk_mb": 102400,
    "disk_mb_used": 0,
    "num_instances": 0,
    "num_io_ops": 0,
    "failed_builds": 0,
    "cpu_allocation_ratio": 1.0,
    "ram_allocation_ratio": 1.0,
    "disk_allocation_ratio": 1.0,
    "is_disabled": False,
    "is_forced_down": False,
    "age_s": 10,
    "instances": [],
    "aggregates": [],
    "numa_cells": [],
    "pci_pools": [],
    "candidates": [],  # the mappings of each candidate
    "images": [],  # image properties of the instances, in order; empty for the rest
}
# The keys that are also attributes of a host state.
ATTRIBUTES = (
    "host",
    "nodename",
    "uuid",
    "hypervisor_hostname",
    "cell_uuid",
    "host_ip",
    "hypervisor_type",
    "hypervisor_version",
    "supported_instances",
    "vcpus_total",
    "vcpus_used",
    "total_usable_ram_mb",
    "free_ram_mb",
    "total_usable_disk_gb",
    "free_disk_mb",
    "disk_mb_used",
    "num_instances",
    "num_io_ops",
    "failed_builds",
    "cpu_allocation_ratio",
    "ram_allocation_ratio",
    "disk_allocation_ratio",
)

PROJECTS = ("alpha", "beta", "größe")
FLAVORS = ("m1.small", "m1.large", "m1.größe")
SUPPORTED = (
    ["x86_64", "kvm", "hvm"],
    ["i686", "kvm", "hvm"],
    ["x86_64", "xen", "xen"],
    ["aarch64", "qemu", "hvm"],
    ["x86_64", "baremetal", "hvm"],
)
CPU_INFO: tuple[Json, ...] = (
    {},
    {"arch": "x86_64", "vendor": "Intel", "topology": {"cores": 4, "threads": 2}, "features": ["aes", "mmx", "avx2"]},
    {"arch": "aarch64", "topology": {"cores": 16}, "features": [], "maxphysaddr": {"bits": 46, "mode": "emulate"}},
    {"maxphysaddr": {"bits": 39}, "features": ["aes"], "größe": "ü", "nothing": None},
)
STATS: tuple[dict[str, str], ...] = (
    {},
    {"rank": "3", "note": "a b", "io_workload": "2"},
    {"rank": "x", "nested": '{"gpu": {"model": "T4", "count": 2}, "list": ["a", "b"]}', "empty": ""},
    {"nested": "{not json", "rank": "10", "hypervisor_type": "QEMU", "name": "größe"},
    {"nested": '["a"]', "rank": " 5 ", "deep": '{"a": "{\\"b\\": 7}"}'},
)
TEXTS = ("", " ", ",", "a", "a,b", " a , b ", "3", "x", "größe", "1,2", "nan", "1.5", "-1", "true", "yes")
NUMBERS = ("3", "1", " 7 ", "0", "-1", "2.5", "x", "", "3,4", "inf", "1e3", "1_0", "٣")
MULTIPLIERS = ("2.0", "-1", "0", "x", "1,2", " 3 ", "", "0.5")
WEIGHTS = (
    "ram",
    "cpu",
    "disk",
    "io_ops",
    "num_instances",
    "hypervisor_version",
    "build_failure",
    "soft_affinity",
    "soft_anti_affinity",
    "cross_cell_move",
    "metrics",
    "pci",
    "image_props",
)
# Keys of one rule or of similar rules, with their values.
METADATA: tuple[dict[str, tuple[str, ...]], ...] = (
    {
        "filter_tenant_id": ("alpha", "beta, gamma", "", ",", "größe ", "alpha,"),
        "filter_tenant_id_2": ("beta", "delta"),
        "filter_tenant_idea": ("alpha",),
    },
    {"instance_type": ("m1.small", "m1.large, m1.größe", "", " m1.small ,x", ",")},
    {"max_io_ops_per_host": NUMBERS, "max_instances_per_host": NUMBERS},
    {f"{name}_weight_multiplier": MULTIPLIERS for name in WEIGHTS} | {"weight_multiplier": MULTIPLIERS},
    {
        "ssd": ("true", "false", "true,false", "", "True"),
        "rank": TEXTS,
        "größe": TEXTS,
        "hypervisor_type": ("QEMU", "kvm"),
    },
    {
        "hw_architecture": ("x86_64", "i686,x86_64", "amd64", ""),
        "hw_vm_mode": ("hvm", "xen", "hvm, xen", "hv"),
        "img_hv_type": ("kvm", "qemu", "xen,kvm"),
        "os_type": ("linux", "windows", "linux, windows", ""),
        "os_distro": ("ubuntu", "größe"),
        "hw_cpu_sockets": ("2", "02", "1,2"),
        "hw_boot_menu": ("True", "true", "yes", "False"),
        "hw_qemu_guest_agent": ("True", "yes", "false,False"),
        "color": ("red", "blue"),
    },
)


def aggregates(chance: random.Random) -> dict[str, dict[str, str]]:
    """Return random aggregates with metadata, by name."""
    # Only a few keys, so that several aggregates have the same key.
    known = [
        (key, values)
        for group in chance.sample(METADATA, chance.choice([1, 2, 3]))
        for key, values in chance.sample(sorted(group.items()), chance.randint(1, min(4, len(group))))
    ]
    return {
        f"aggregate-{number}": {key: chance.choice(values) for key, values in known if chance.random() < 0.6}
        for number in range(chance.choice([0, 1, 2, 3, 4]))
    }


def host(chance: random.Random, number: int, labels: list[str]) -> Json:
    """Return a random host without defaults."""
    table: Json = {
        "instances": [uuid_of("instance", 100 * number + at) for at in range(chance.choice([0, 0, 1, 2, 4]))]
    }
    table["num_instances"] = chance.choice([len(table["instances"]), 0, 1, 2, 5, 49, 50, 51])
    choices: dict[str, tuple[Any, ...]] = {
        "num_io_ops": (0, 1, 3, 4, 7, 8, 9),
        "failed_builds": (0, 0, 1, 10),
        "vcpus_total": (0, 1, 8, 16, 100),
        "vcpus_used": (0, 3, 8, 200),
        "cpu_allocation_ratio": (1.0, 16.0, 0.0, 1.1),
        "ram_allocation_ratio": (1.5, 1.0),
        "disk_allocation_ratio": (2.0,),
        "total_usable_ram_mb": (0, 2048, 65536),
        "free_ram_mb": (-512, 0, 100, 2048, 65536),
        "total_usable_disk_gb": (0, 20, 1000),
        "free_disk_mb": (-1024, 0, 1024, 102400),
        "disk_mb_used": (0, 1024, 5 * 1024),
        "host_ip": ("192.168.1.5", "192.168.1.130", "10.0.0.1", "fd00::5", "fd00:1::5", "192.168.1.0", None),
        "hypervisor_type": ("QEMU", "kvm", "xen", "größe"),
        "hypervisor_version": (1002003, 4001000, 6002000, 10000000),
        "cpu_info": CPU_INFO,
        "stats": STATS,
        "cell_uuid": (uuid_of("cell", 1), uuid_of("cell", 2)),
        "is_disabled": (False, False, True),
        "is_forced_down": (False, False, False, True),
        "age_s": (0, 29, 30, 31, 59, 60, 61, 1000, -30, -60, -61),
    }
    for name, values in choices.items():
        if chance.random() < 0.6:
            table[name] = chance.choice(values)
    if chance.random() < 0.7:
        table["supported_instances"] = chance.sample(SUPPORTED, chance.choice([0, 1, 2]))
    if chance.random() < 0.6:
        names = chance.sample(
            ["cpu.percent", "cpu.frequency", "cpu.user.time", "cpu.idle.percent"], chance.randint(1, 4)
        )
        table["metrics"] = {name: chance.choice([0, 1, 50, 99, 2400, 10**12]) for name in names}
    table["aggregates"] = chance.sample(labels, chance.randint(0, len(labels)))
    if chance.random() < 0.04:
        table["host"] = "host-1"  # Two nodes of one service.
    return table
