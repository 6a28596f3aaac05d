"""Hosts and requests for the weigher ``room``."""

import random

import msgspec

from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import settings_of


def room_settings(**options: object) -> Settings:
    """Return settings with the weigher ``room`` alone."""
    settings = settings_of(enabled_filters=(), max_attempts=1, options={"room_weight_multiplier": 1.0, **options})
    alone = msgspec.structs.replace(settings.filter_scheduler, weight_classes=("room",))
    return msgspec.structs.replace(settings, filter_scheduler=alone)


def room_host(name: str, vcpus: int, memory_mb: int, *, ratio: float = 1.0, reserved: int = 0) -> Fleet:
    """Return a host; ``ratio`` is the overcommit of processors, ``reserved`` an amount of both resources."""
    inventories = {
        "VCPU": Inventory(total=vcpus, reserved=reserved, allocation_ratio=ratio),
        "MEMORY_MB": Inventory(total=memory_mb, reserved=reserved),
    }
    provider = ProviderSpec(uuid=uuid_named(name), name=name, inventories=inventories)
    return Fleet(providers=[provider], hosts=[HostSpec(provider_uuid=provider.uuid, host=name, node=name)])


def room_request(vcpus: int, memory_mb: int, **request: object) -> Request:
    """Return a request for one instance."""
    flavor = Flavor(name=f"{vcpus}c-{memory_mb}m", vcpus=vcpus, memory_mb=memory_mb)
    return Request(flavor=flavor, **request)  # type: ignore[arg-type]  # as named


def sized_requests(count: int, seed: int) -> list[Request]:
    """Return requests of a few sizes, small ones more often."""
    draw = random.Random(seed)
    kinds = [
        room_request(vcpus, memory_mb) for vcpus, memory_mb in ((1, 4), (2, 4), (2, 16), (4, 16), (8, 16), (8, 48))
    ]
    return draw.choices(kinds, weights=(8, 6, 4, 3, 2, 1), k=count)
