"""Generated requests: a mix of flavors, with random arrivals and lifetimes."""

import math
import random
import uuid
from collections.abc import Iterator

import msgspec

from roost.model.flavor import Flavor
from roost.model.group import GroupPolicy, ServerGroup
from roost.model.request import Request, ResourceGroup
from roost.simulator.stable_uuids import uuid_of
from roost.simulator.traces.generated_fleet import GPU_CLASS, ZONES
from roost.simulator.workload import Stay

_ARRIVALS_PER_S = 1.0
_LIFETIME_MEDIAN_S = 7_200.0
_LIFETIME_SIGMA = 1.5  # of the logarithm: most lifetimes are short, a few last for days
_PROJECTS = 20
_ZONED_SHARE = 0.25
_GROUPED_SHARE = 0.06
_NEW_GROUP_SHARE = 0.35  # about three members per group
_OPEN_GROUPS = 20  # the newest groups, open for new members
_MULTIPLE_SHARE = 0.03
_COUNT_MAX = 10
_POLICIES: dict[GroupPolicy, float] = {
    "anti-affinity": 0.5,
    "soft-anti-affinity": 0.25,
    "affinity": 0.15,
    "soft-affinity": 0.1,
}


class RequestKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of request, and its relative frequency."""

    weight: float
    flavor: Flavor
    groups: tuple[ResourceGroup, ...] = ()


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """A population of requests."""

    kinds: tuple[RequestKind, ...]
    is_plain: bool = False  # without zones, groups and multiple instances


def _flavor(name: str, vcpus: int, memory_mb: int, *, root_gb: int, trait: str = "", **specs: str) -> Flavor:
    extra_specs = {f"trait:{trait}": "required"} | specs if trait else specs
    return Flavor(name=name, vcpus=vcpus, memory_mb=memory_mb, root_gb=root_gb, extra_specs=extra_specs)


def _gpus(count: int, *traits: str) -> tuple[ResourceGroup, ...]:
    required = (frozenset(traits),) if traits else ()
    return tuple(
        ResourceGroup(suffix=f"_GPU{index}", resources={GPU_CLASS: 1}, required=required) for index in range(count)
    )


_PLAIN = (
    RequestKind(weight=0.18, flavor=_flavor("tiny", 1, 2_048, root_gb=20)),
    RequestKind(weight=0.22, flavor=_flavor("small", 2, 4_096, root_gb=40)),
    RequestKind(weight=0.20, flavor=_flavor("medium", 4, 8_192, root_gb=80)),
    RequestKind(weight=0.12, flavor=_flavor("large", 8, 16_384, root_gb=160)),
)
_SPECIAL = (
    RequestKind(weight=0.06, flavor=_flavor("xlarge", 16, 32_768, root_gb=320)),
    RequestKind(weight=0.05, flavor=_flavor("memory", 8, 65_536, root_gb=100)),
    RequestKind(weight=0.04, flavor=_flavor("compute", 16, 16_384, root_gb=50)),
    RequestKind(weight=0.05, flavor=_flavor("vector", 8, 32_768, root_gb=100, trait="HW_CPU_X86_AVX512F")),
    RequestKind(weight=0.02, flavor=_flavor("inference", 16, 65_536, root_gb=100, trait="HW_CPU_X86_AVX512VNNI")),
    RequestKind(weight=0.03, flavor=_flavor("gpu", 8, 65_536, root_gb=100), groups=_gpus(1)),
    RequestKind(
        weight=0.01,
        flavor=_flavor("gpu-pair", 16, 131_072, root_gb=200, group_policy="isolate"),
        groups=_gpus(2, "CUSTOM_GPU_80GB"),
    ),
    RequestKind(weight=0.01, flavor=_flavor("huge", 96, 786_432, root_gb=2_000)),  # newest generation only
    # No host can hold these two, so that a replay has refusals, too.
    RequestKind(weight=0.005, flavor=_flavor("impossible", 512, 8_388_608, root_gb=100)),
    RequestKind(weight=0.005, flavor=_flavor("enclave", 4, 8_192, root_gb=40, trait="HW_CPU_X86_SGX")),
)
MIXES: dict[str, Mix] = {
    "mixed": Mix(kinds=_PLAIN + _SPECIAL),
    "few": Mix(kinds=_PLAIN, is_plain=True),
}


def generate_stays(count: int, mix: Mix, *, rng: random.Random, groups: list[ServerGroup]) -> Iterator[Stay]:
    """Generate requests in order of arrival; append new server groups to ``groups``."""
    weights = [kind.weight for kind in mix.kinds]
    lifetime_mu = math.log(_LIFETIME_MEDIAN_S)
    at_s = 0.0
    for kind in rng.choices(mix.kinds, weights, k=count):
        at_s += rng.expovariate(_ARRIVALS_PER_S)
        instances, zone, group = 1, None, None
        if not mix.is_plain:
            instances = rng.randint(2, _COUNT_MAX) if rng.random() < _MULTIPLE_SHARE else 1
            zone = rng.choice(ZONES) if rng.random() < _ZONED_SHARE else None
            group = _group(rng, groups) if rng.random() < _GROUPED_SHARE else None
        request = Request(
            flavor=kind.flavor,
            groups=kind.groups,
            count=instances,
            instance_uuids=tuple(_uuid(rng) for _ in range(instances)),
            group=group,
            project_id=f"project-{rng.randrange(_PROJECTS):02d}",
            availability_zone=zone,
        )
        yield Stay(request, at_s, at_s + rng.lognormvariate(lifetime_mu, _LIFETIME_SIGMA))


def _group(rng: random.Random, groups: list[ServerGroup]) -> str:
    if groups and rng.random() >= _NEW_GROUP_SHARE:
        return rng.choice(groups[-_OPEN_GROUPS:]).uuid
    name = f"group-{len(groups):05d}"
    policy = rng.choices(list(_POLICIES), list(_POLICIES.values()))[0]
    groups.append(ServerGroup(uuid=uuid_of("generated", "group", name), name=name, policy=policy))
    return groups[-1].uuid


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))
