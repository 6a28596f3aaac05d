"""Hosts that can hold a request in several ways, so that only a search or trial placement counts how many fit."""

import msgspec

from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import ResourceGroup
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, small_request


def nested_memory_host(name, *, cells=3, memory_mb=1000):
    """Return a host whose memory is on child providers."""
    root = host(name, VCPU=100_000)
    children = [
        ProviderSpec(
            uuid=uuid_named(f"{name}-{number}"),
            name=f"{name}-{number}",
            parent_uuid=uuid_named(name),
            inventories={"MEMORY_MB": Inventory(total=memory_mb)},
        )
        for number in range(cells)
    ]
    return msgspec.structs.replace(root, providers=[*root.providers, *children])


def two_amounts(project_id=""):
    """Return a request with two amounts of one class in separate groups."""
    groups = tuple(ResourceGroup(suffix=f"_{number}", resources={"MEMORY_MB": 1 + number}) for number in range(2))
    return small_request(memory_mb=0, groups=groups, project_id=project_id)


# The same request as a document.
TWO_AMOUNTS = {
    "flavor": {"name": "f", "vcpus": 1},
    "resource_groups": [{"suffix": f"_{number}", "resources": {"MEMORY_MB": 1 + number}} for number in range(2)],
}
