"""Pairs of a fleet and a request, one for each seed, as JSON tables.

A table can omit defaults, so that a pair can be shortened by removing parts; ``whole`` adds the defaults. Texts are
odd on purpose: invalid numbers, empty parts, blanks, non-ASCII characters.
"""

import random
from typing import Any

from tests.differential.scheduler.devices import give_devices, map_devices, whole_cell, wish_devices
from tests.differential.scheduler.hosts import HOST, aggregates, host, uuid_of
from tests.differential.scheduler.nova import FILTERS
from tests.differential.scheduler.requests import REQUEST, request

Json = dict[str, Any]

# All options of the reference's filters and weighers, with the values in generated pairs.
LIMITS = {"max_io_ops_per_host": (0, 1, 4, 8), "max_instances_per_host": (1, 2, 5, 50)}
MULTIPLIERS = (
    "ram_weight_multiplier",
    "cpu_weight_multiplier",
    "disk_weight_multiplier",
    "io_ops_weight_multiplier",
    "build_failure_weight_multiplier",
    "cross_cell_move_weight_multiplier",
    "hypervisor_version_weight_multiplier",
    "num_instances_weight_multiplier",
    "image_props_weight_multiplier",
)
POSITIVE_MULTIPLIERS = (
    "pci_weight_multiplier",
    "soft_affinity_weight_multiplier",
    "soft_anti_affinity_weight_multiplier",
)
# Image properties of existing instances.
IMAGES: dict[str, tuple[str, ...]] = {
    "hw_architecture": ("x86_64", "amd64", "i686", "aarch64"),
    "hw_vm_mode": ("hvm", "xen", "hv"),
    "hw_cpu_sockets": ("2", "02", "1"),
    "hw_boot_menu": ("true", "yes", "False", "0"),
    "hw_qemu_guest_agent": ("yes", "no", "true"),
    "os_distro": ("debian", "Debian"),
}
METRICS = ("cpu.percent", "cpu.frequency", "cpu.user.time", "cpu.idle.percent")


def pair(seed: int) -> Json:
    """Return the pair of a seed."""
    chance = random.Random(seed)
    labels = aggregates(chance)
    hosts = [host(chance, number, list(labels)) for number in range(chance.choice([2, 3, 5, 8, 12]))]
    wanted = request(chance, hosts, labels)
    found: Json = {"aggregates": labels, "hosts": hosts, "request": wanted, "options": options(chance)}
    if chance.random() < 0.25:
        give_devices(chance, hosts)
        wish_devices(chance, wanted, found["options"])
        if chance.random() < 0.5:
            map_devices(chance, hosts, wanted)
    give_images(random.Random(f"{seed} images"), found)
    # Only a few filters, so that some hosts remain for the weighers.
    found["enabled"] = chance.sample(FILTERS, chance.choice([0, 1, 2, 3]))
    return found


def give_images(chance: random.Random, pair: Json) -> None:
    """Add images to instances, and sometimes weights of their properties."""
    for each in pair["hosts"]:
        each["images"] = [
            {name: chance.choice(IMAGES[name]) for name in chance.sample(sorted(IMAGES), chance.choice([0, 1, 2, 3]))}
            for _ in each["instances"]
        ]
    if chance.random() < 0.4:
        weights = ("1", "2.5", "-1", "0", "x")
        names = chance.sample([*IMAGES, "nobody"], chance.choice([1, 2, 3]))
        setting = [f"{name}={chance.choice(weights)}" for name in names]
        pair["options"]["filter_scheduler"]["image_props_weight_setting"] = setting


def options(chance: random.Random) -> Json:
    """Draw options; most keep their defaults."""
    rules: Json = {}
    for name, values in LIMITS.items():
        if chance.random() < 0.5:
            rules[name] = chance.choice(values)
    for name in MULTIPLIERS:
        if chance.random() < 0.3:
            rules[name] = chance.choice([0.0, 1.0, -1.0, 2.5, -0.1, 1e6])
    for name in POSITIVE_MULTIPLIERS:
        if chance.random() < 0.3:
            rules[name] = chance.choice([0.0, 1.0, 3.5])
    if chance.random() < 0.4:
        rules["isolated_images"] = chance.sample([uuid_of("image", 1), uuid_of("image", 2), ""], chance.choice([1, 2]))
    if chance.random() < 0.5:
        rules["isolated_hosts"] = chance.sample(["host-1", "host-3", "HOST-2", "elsewhere"], chance.choice([1, 2]))
    if chance.random() < 0.5:
        rules["restrict_isolated_hosts_to_isolated_images"] = chance.random() < 0.5
    if chance.random() < 0.3:
        rules["image_properties_default_architecture"] = chance.choice(["x86_64", "aarch64", "i686"])
    if chance.random() < 0.3:
        rules["aggregate_image_properties_isolation_namespace"] = chance.choice(["hw", "os", "hw_vm"])
        rules["aggregate_image_properties_isolation_separator"] = chance.choice(["_", ".", ""])
    metrics: Json = {"required": chance.random() < 0.4}
    if chance.random() < 0.6:
        ratios = ("1.0", "-2", "0", "0.5", "x", "")
        names = chance.sample(METRICS, chance.choice([1, 1, 2]))
        metrics["weight_setting"] = [
            f"{name}={chance.choice(ratios[:3] if chance.random() < 0.8 else ratios)}" for name in names
        ]
    if chance.random() < 0.4:
        metrics["weight_multiplier"] = chance.choice([0.0, 2.0, -1.0])
    if chance.random() < 0.3:
        metrics["weight_of_unavailable"] = chance.choice([-1.0, 0.0, 50.0])
    return {"filter_scheduler": rules, "metrics": metrics, "DEFAULT": down_time(chance)}


def down_time(chance: random.Random) -> Json:
    """Draw the number of seconds after which a service counts as down."""
    return {"service_down_time": chance.choice([60, 61, 30])} if chance.random() < 0.4 else {}


def whole(table: Json) -> Json:
    """Return a pair with all defaults."""
    hosts = []
    for number, each in enumerate(table.get("hosts", []), start=1):
        name = each.get("host", f"host-{number}")
        host_table = {**HOST, "host": name, "nodename": f"node-{number}", "uuid": uuid_of("host", number), **each}
        host_table["hypervisor_hostname"] = host_table["nodename"]
        host_table["numa_cells"] = [whole_cell(cell, at) for at, cell in enumerate(host_table["numa_cells"])]
        hosts.append(host_table)
    wanted = {**REQUEST, **table.get("request", {})}
    wanted["flavor"] = {**REQUEST["flavor"], **wanted["flavor"]}
    if wanted["image"] is not None:
        wanted["image"] = {"id": uuid_of("image", 9), "properties": {}, **wanted["image"]}
    device = {"count": 1, "spec": [], "request_id": uuid_of("device", 1), "alias_name": None, "numa_policy": None}
    wanted["pci_requests"] = [{**device, **each} for each in wanted["pci_requests"]]
    if wanted["network"] is not None:
        wanted["network"] = {"physnets": [], "tunneled": False, **wanted["network"]}
    if wanted["group"] is not None:
        group = {"policy": "affinity", "rules": {}, "members": [], **wanted["group"]}
        hosts_of_members = [each["host"] for each in hosts if set(group["members"]) & set(each["instances"])]
        wanted["group"] = {**group, "uuid": uuid_of("group", 1), "hosts": list(dict.fromkeys(hosts_of_members))}
    if wanted["destination"] is not None:
        wanted["destination"] = {"cell": uuid_of("cell", 1), "allow_cross_cell_move": False, **wanted["destination"]}
    return {
        "aggregates": table.get("aggregates", {}),
        "hosts": hosts,
        "request": wanted,
        "enabled": table.get("enabled", []),
        "options": {"filter_scheduler": {}, "metrics": {}, "DEFAULT": {}, "pci": {}, **table.get("options", {})},
    }
