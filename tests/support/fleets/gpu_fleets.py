"""Hosts with GPUs as child providers, and requests for parts of GPUs."""

import random
from collections.abc import Sequence

import msgspec

from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request, ResourceGroup
from roost.model.settings.roost_settings import Settings
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, merge_fleets, settings_of

GPU = "CUSTOM_GPU_MILLI"


def gpu_settings(**options: object) -> Settings:
    """Return settings with the weigher ``gpu_value`` alone."""
    settings = settings_of(enabled_filters=(), max_attempts=1, options={"gpu_value_weight_multiplier": 1.0, **options})
    alone = msgspec.structs.replace(settings.filter_scheduler, weight_classes=("gpu_value",))
    return msgspec.structs.replace(settings, filter_scheduler=alone)


def gpu_host(name: str, *capacities: int, vcpus: int = 64, memory_mb: int = 1024, traits: Sequence[str] = ()) -> Fleet:
    """Return a host with one child provider per GPU."""
    base = host(name, VCPU=vcpus, MEMORY_MB=memory_mb)
    gpus = [
        ProviderSpec(
            uuid=uuid_named(f"{name}-gpu{number}"),
            name=f"{name}-gpu{number}",
            parent_uuid=base.providers[0].uuid,
            inventories={GPU: Inventory(total=capacity)},
            traits=frozenset(traits),
        )
        for number, capacity in enumerate(capacities)
    ]
    return Fleet(providers=[*base.providers, *gpus], hosts=base.hosts)


def gpu_fleet(hosts: int, *, gpus: int = 4) -> Fleet:
    """Return equal hosts h0, h1 and so on, with GPUs of 1,000 units."""
    return merge_fleets(*(gpu_host(f"h{number}", *[1000] * gpus) for number in range(hosts)))


def gpu_request(amount: int, *, gpus: int = 1, vcpus: int = 2, memory_mb: int = 8, **request: object) -> Request:
    """Return a request for an amount on each of some GPUs; none for an amount of 0."""
    groups = tuple(ResourceGroup(suffix=f"_G{number}", resources={GPU: amount}) for number in range(gpus) if amount)
    specs = {"group_policy": "isolate"} if gpus > 1 else {}
    flavor = Flavor(name=f"{gpus}x{amount}", vcpus=vcpus, memory_mb=memory_mb, extra_specs=specs)
    return Request(flavor=flavor, groups=groups, **request)  # type: ignore[arg-type]  # as named


def mixed_requests(count: int, seed: int) -> list[Request]:
    """Return requests for parts of GPUs, whole GPUs, and none."""
    draw = random.Random(seed)
    kinds = [
        gpu_request(810, vcpus=6),
        gpu_request(460, vcpus=4),
        gpu_request(320, vcpus=3),
        gpu_request(160, vcpus=1),
        gpu_request(1000, vcpus=8),
        gpu_request(1000, gpus=2, vcpus=16),
        gpu_request(0, vcpus=4),
    ]
    return [draw.choice(kinds) for _ in range(count)]
