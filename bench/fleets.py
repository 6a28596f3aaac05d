"""Fleets and requests for the workloads, the same at every run."""

import random
from itertools import cycle, islice

import msgspec

from bench.workloads import Workload
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.group import ServerGroup
from roost.model.host import HostFacts, HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.simulator.stable_uuids import uuid_of
from roost.simulator.traces.generated_fleet import GPU_CLASS, ZONES, generate_fleet
from roost.simulator.traces.generated_requests import MIXES, generate_stays
from roost.simulator.traces.openb import PodShape, build_query, build_tree

# Drawn for the fleet "trees"; their server groups are in the fleet, so all workloads share one file.
_DRAWN = 20_000
_SIZES = ((1, 2_048, 20), (2, 4_096, 40), (4, 8_192, 80), (8, 16_384, 160), (8, 65_536, 100))
_GPUS = 4
_GPU_SIZES = ((4_000, 1, 460), (6_000, 1, 810), (2_000, 1, 160), (8_000, 1, 1_000), (16_000, 2, 1_000))
_TRAITS = ("", "HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F")
_LABELS = [(trait, zone) for zone in (None, *ZONES) for trait in _TRAITS]
SHAPES_MAX = len(_SIZES) * len(_LABELS)


def fleet_of(kind: str, hosts: int) -> Fleet:
    """Return a fleet: identical, mixed, trees or gpus."""
    if kind == "identical":
        return _identical(hosts)
    if kind == "gpus":
        return _with_gpus(hosts)
    groups: list[ServerGroup] = []
    if kind == "trees":
        _drawn(groups)
    trees = generate_fleet(hosts, rng=random.Random("bench/fleet"), groups=groups)
    return trees if kind == "trees" else _flattened(trees)


def requests_of(workload: Workload) -> list[Request]:
    """Return the requests of a workload, those of its warm-up first."""
    wanted = workload.warm_up + workload.requests
    if workload.fleet == "trees":
        assert wanted <= _DRAWN, wanted
        return _drawn([])[:wanted]
    build = _gpu_request if workload.fleet == "gpus" else _request
    shapes = [build(number, count=workload.count) for number in range(workload.shapes)]
    return list(islice(cycle(shapes), wanted))


def _identical(hosts: int) -> Fleet:
    offers = {
        "VCPU": Inventory(total=64, allocation_ratio=4.0),
        "MEMORY_MB": Inventory(total=262_144, reserved=4_096),
        "DISK_GB": Inventory(total=2_000),
    }
    names = [f"host-{index:05d}" for index in range(hosts)]
    providers = [ProviderSpec(uuid=uuid_of("bench", name), name=name, inventories=offers) for name in names]
    facts = HostFacts(cpu_allocation_ratio=4.0)
    specs = [HostSpec(provider_uuid=each.uuid, host=each.name, node=each.name, facts=facts) for each in providers]
    return Fleet(providers=providers, hosts=specs)


def _with_gpus(hosts: int) -> Fleet:
    trees = [
        build_tree(f"host-{index:05d}", cpu_milli=64_000, memory_mib=262_144, gpu_count=_GPUS, model="A10")
        for index in range(hosts)
    ]
    specs = [HostSpec(provider_uuid=root.uuid, host=root.name, node=root.name) for root, *_ in trees]
    return Fleet(providers=[spec for tree in trees for spec in tree], hosts=specs)


def _flattened(fleet: Fleet) -> Fleet:
    """Let hosts themselves offer what their NUMA nodes do; GPUs are left out."""
    offers = {spec.uuid: dict(spec.inventories) for spec in fleet.providers if spec.parent_uuid is None}
    for spec in fleet.providers:
        if spec.parent_uuid is None or GPU_CLASS in spec.inventories:
            continue
        own = offers[spec.parent_uuid]
        for name, one in spec.inventories.items():
            before = own.get(name)
            total, reserved = (one.total, one.reserved)
            if before is not None:
                total, reserved = total + before.total, reserved + before.reserved
            own[name] = msgspec.structs.replace(one, total=total, reserved=reserved)
    providers = [
        msgspec.structs.replace(spec, inventories=offers[spec.uuid]) for spec in fleet.providers if spec.uuid in offers
    ]
    return msgspec.structs.replace(fleet, providers=providers)


def _drawn(groups: list[ServerGroup]) -> list[Request]:
    stays = generate_stays(_DRAWN, MIXES["mixed"], rng=random.Random("bench/requests"), groups=groups)
    requests = (stay.request for stay in stays)
    return [msgspec.structs.replace(each, count=1, instance_uuids=each.instance_uuids[:1]) for each in requests]


def _gpu_request(number: int, *, count: int) -> Request:
    cpu_milli, gpu_count, gpu_milli = _GPU_SIZES[number]
    flavor, groups = build_query(PodShape(cpu_milli, 8_192, gpu_count, gpu_milli, ""))
    return Request(flavor=flavor, groups=groups, count=count, project_id="project")


def _request(number: int, *, count: int) -> Request:
    assert number < SHAPES_MAX, number
    vcpus, memory_mb, root_gb = _SIZES[number % len(_SIZES)]
    trait, zone = _LABELS[number // len(_SIZES)]
    extra_specs = {f"trait:{trait}": "required"} if trait else {}
    flavor = Flavor(name=f"flavor-{number}", vcpus=vcpus, memory_mb=memory_mb, root_gb=root_gb, extra_specs=extra_specs)
    return Request(flavor=flavor, count=count, project_id="project", availability_zone=zone)
