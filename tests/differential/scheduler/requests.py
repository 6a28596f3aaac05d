"""Random requests: flavors, images, hints, groups."""

import json
import random
from typing import Any

from tests.differential.scheduler.hosts import FLAVORS, PROJECTS, TEXTS, uuid_of

Json = dict[str, Any]

REQUEST: Json = {
    "flavor": {
        "name": "m1.small",
        "vcpus": 1,
        "memory_mb": 512,
        "root_gb": 1,
        "ephemeral_gb": 0,
        "swap": 0,
        "extra_specs": {},
    },
    "image": None,
    "hints": {},
    "group": None,
    "project_id": "alpha",
    "instance_uuid": uuid_of("instance", 99999),
    "destination": None,
    "network": None,
    "pci_requests": [],
}

OPERATORS = (
    "=",
    "==",
    "!=",
    ">=",
    "<=",
    "s==",
    "s!=",
    "s<",
    "s<=",
    "s>",
    "s>=",
    "<in>",
    "<all-in>",
    "<or>",
    "<",
    ">",
)
OPERANDS = (
    "3",
    "10",
    "x86_64",
    "x",
    "aes",
    "aes mmx",
    "QEMU",
    "kvm",
    "true",
    "a",
    "a b",
    "größe",
    "T4",
    "2",
    "6002000",
    "-512",
    "0",
    "",
    "1.5",
    "nan",
    "3 <or> 10",
    "QEMU <or> kvm",
    "a <or> a b",
    "5",
    "7",
    "1e1",
    "16.0",
)
KEYS = (
    "hypervisor_type",
    "hypervisor_version",
    "rank",
    "ssd",
    "größe",
    "free_ram_mb",
    "num_instances",
    "vcpus_used",
    "num_io_ops",
    "host",
    "nobody",
    "hw:other",
    "capabilities:hypervisor_type",
    "capabilities:hypervisor_version",
    "capabilities:cpu_info:arch",
    "capabilities:cpu_info:topology:cores",
    "capabilities:cpu_info:features",
    "capabilities:cpu_info",
    "capabilities:cpu_info:größe",
    "capabilities:cpu_info:nothing",
    "capabilities:rank",
    "capabilities:stats:rank",
    "capabilities:nested:gpu:model",
    "capabilities:nested:gpu",
    "capabilities:nested:list",
    "capabilities:nested",
    "capabilities:deep:a:b",
    "capabilities:vcpus_total",
    "capabilities:free_disk_mb",
    "capabilities:disk_mb_used",
    "capabilities:cpu_allocation_ratio",
    "capabilities:ram_allocation_ratio",
    "capabilities:host",
    "capabilities:host:a",
    "capabilities:supported_instances",
    "capabilities:nobody",
    "capabilities:",
    "capabilities:num_io_ops",
    "capabilities:total_usable_ram_mb",
    "capabilities:cell_uuid",
    "capabilities:empty",
    "capabilities:name",
    "aggregate_instance_extra_specs:ssd",
    "aggregate_instance_extra_specs:rank",
    "aggregate_instance_extra_specs:größe",
    "aggregate_instance_extra_specs:max_io_ops_per_host",
    "aggregate_instance_extra_specs:a:b",
    "aggregate_instance_extra_specs:filter_tenant_id",
    "hw:maxphysaddr_bits",
    "other:rank",
    "trait:HW_CPU_X86_AVX2",
    "stats",
    "empty",
    "note",
    "capabilities:note",
    "name",
    "hypervisor_hostname",
    "cpu_allocation_ratio",
)
PROPERTIES: dict[str, tuple[str, ...]] = {
    "hw_architecture": ("x86_64", "amd64", "i686", "x86", "aarch64", "X86_64", "i386", "ppc64le"),
    "architecture": ("x86_64", "i686"),
    "img_hv_type": ("kvm", "KVM", "qemu", "xen", "xapi", "baremetal"),
    "hypervisor_type": ("kvm", "qemu"),
    "hw_vm_mode": ("hvm", "xen", "hv", "pv", "HVM", "exe"),
    "vm_mode": ("hvm", "xen"),
    "img_hv_requested_version": (">=6.0", ">=1.2.3,<7", "<4.1", "==6.2", "!=6.2.0", " >= 4.1 , < 10", "6.2", ">1.2"),
    "hypervisor_version_requires": (">=6.0",),
    "hw_maxphysaddr_bits": ("40", "46", "1"),
    "os_type": ("linux", "windows"),
    "os_distro": ("ubuntu", "größe"),
    "hw_cpu_sockets": ("2", "02", "1"),
    "hw_boot_menu": ("true", "yes", "False", "0"),
    "hw_qemu_guest_agent": ("yes", "no", "true"),
    "color": ("red", "blue"),
}
QUERIES: tuple[object, ...] = (
    [],
    ["=", "$hypervisor_type", "QEMU"],
    [">=", "$free_ram_mb", 100],
    ["<", "$num_io_ops", 4, 8],
    ["and", [">=", "$free_ram_mb", 0], ["<=", "$vcpus_used", 8]],
    ["or", ["=", "$rank", 1], [">", "$num_instances", 1]],
    ["not", ["=", "$hypervisor_type", "QEMU"]],
    ["in", "$hypervisor_type", "QEMU", "kvm"],
    ["in", "$nobody", "x"],
    ["=", "$stats.rank", "3"],
    ["=", "$stats.nobody", "3"],
    ["=", "$free_ram_mb"],
    ["and"],
    ["or"],
    ["not"],
    ["=", "", "x", "x"],
    [">", "$free_ram_mb", "$num_instances"],
    ["not", ["not", ["=", "$num_io_ops", 0]]],
    ["=", "$cpu_allocation_ratio", 1.0],
    ["xor", 1, 2],
    ["<", "$hypervisor_type", 5],
    {"a": 1},
    ["="],
    "text",
    7,
    ["and", ["or", ["=", "$num_io_ops", 0], ["=", "$failed_builds", 0]], ["not", ["in", "$host", "host-1"]]],
    ["=", "$free_ram_mb", None],
    ["or", ["=", 1, 1], 0],
    ["and", 1, "x"],
)


def request(chance: random.Random, hosts: list[Json], labels: Json) -> Json:
    """Return a random request without defaults."""
    flavor = {
        "name": chance.choice(FLAVORS),
        "vcpus": chance.choice([1, 2, 4]),
        "memory_mb": chance.choice([512, 2048]),
    }
    extra_specs = {}
    for _ in range(chance.choice([0, 0, 1, 1, 2, 3])):
        key = chance.choice(KEYS)
        extra_specs[key] = "40" if key == "hw:maxphysaddr_bits" else wish(chance)
    table: Json = {"flavor": {**flavor, "extra_specs": extra_specs}, "project_id": chance.choice(PROJECTS)}
    if chance.random() < 0.7:
        # Half of the images use properties that are also in aggregate metadata.
        in_metadata = sorted({key for metadata in labels.values() for key in metadata} & PROPERTIES.keys())
        known = in_metadata if in_metadata and chance.random() < 0.5 else sorted(PROPERTIES)
        names = chance.sample(known, min(len(known), chance.choice([0, 1, 2, 3])))
        properties = {name: chance.choice(PROPERTIES[name]) for name in names}
        table["image"] = {"id": uuid_of("image", chance.choice([1, 2, 3])), "properties": properties}
    table["hints"] = hints(chance, hosts)
    instances = [uuid for host in hosts for uuid in host["instances"]]
    if chance.random() < 0.5:
        policy = chance.choice(["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"])
        table["group"] = {"policy": policy, "members": chance.sample(instances, chance.randint(0, len(instances)))}
        if policy == "anti-affinity" and chance.random() < 0.6:
            table["group"]["rules"] = {"max_server_per_host": chance.choice([1, 2, 3])}
    if instances and chance.random() < 0.3:
        table["instance_uuid"] = chance.choice(instances)
    if chance.random() < 0.3:
        cell = uuid_of("cell", chance.choice([1, 2, 3]))
        table["destination"] = {"cell": cell, "allow_cross_cell_move": chance.random() < 0.7}
    return table


def wish(chance: random.Random) -> str:
    """Return a random requirement: an operator with operands, or a literal."""
    kind = chance.random()
    if kind < 0.2:
        return chance.choice(OPERANDS)
    if kind < 0.25:
        return chance.choice(TEXTS)
    text = f"{chance.choice(OPERATORS)} {chance.choice(OPERANDS)}"
    return text.replace(" ", "", 1) if kind < 0.3 else text


def hints(chance: random.Random, hosts: list[Json]) -> Json:
    """Return random hints: instances, an address, and a query."""
    table: Json = {}
    uuids = [uuid for host in hosts for uuid in host["instances"]] + [uuid_of("instance", 88888)]
    for name in ("same_host", "different_host"):
        if chance.random() < 0.3:
            some = chance.sample(uuids, min(len(uuids), chance.choice([0, 1, 1, 2, 3])))
            table[name] = some[0] if len(some) == 1 and chance.random() < 0.5 else some
    if chance.random() < 0.35:
        address = chance.choice(
            ["192.168.1.1", "10.0.0.0", "fd00::1", "192.168.1.129", "192.168.1.1", "no address", ""]
        )
        table["build_near_host_ip"] = [address] if chance.random() < 0.5 else address
        if chance.random() < 0.7:
            table["cidr"] = chance.choice(["/24", "/25", "/0", "/32", "/64", "/16", "/30", "24", "/99", "", "/x"])
    if chance.random() < 0.4:
        text = json.dumps(chance.choice(QUERIES))
        table["query"] = [text] if chance.random() < 0.5 else text
    if chance.random() < 0.05:
        table["_nova_check_type"] = ["rebuild"]
    return table
