"""Capacity of hosts that can hold a request in several ways, compared with placing one by one."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from roost.model.fleet import Fleet
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import ResourceGroup
from tests.reference.capacity import compare
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, merge_fleets, roost_on, settings_of, small_request

CLASSES = ("MEMORY_MB", "DISK_GB", "VGPU")
FILTERS = ("ComputeFilter", "RamFilter", "NumInstancesFilter")


@st.composite
def inventories(draw):
    """Draw small inventories, with steps and ratios that do not divide evenly."""
    found = {}
    for name in draw(st.sets(st.sampled_from(CLASSES))):
        total = draw(st.integers(1, 24))
        step = draw(st.sampled_from([1, 1, 2, 3]))
        found[name] = Inventory(
            total=total,
            step_size=step,
            min_unit=draw(st.integers(1, 2)),
            max_unit=draw(st.integers(2, total + 2)),
            allocation_ratio=draw(st.sampled_from([1.0, 1.5])),
            reserved=draw(st.integers(0, 1)),
        )
    return found


@st.composite
def fleets(draw):
    """Draw one or two hosts with up to four child providers, some nested."""
    hosts = []
    for name in ("a", "b")[: draw(st.integers(1, 2))]:
        root = host(name, VCPU=draw(st.integers(4, 40)))
        own = [
            msgspec.structs.replace(each, inventories=each.inventories | draw(inventories())) for each in root.providers
        ]
        names = [name]
        for number in range(draw(st.integers(1, 4))):
            child = f"{name}-{number}"
            own.append(
                ProviderSpec(
                    uuid=uuid_named(child),
                    name=child,
                    parent_uuid=uuid_named(draw(st.sampled_from(names))),
                    inventories=draw(inventories()),
                )
            )
            names.append(child)
        hosts.append(msgspec.structs.replace(root, providers=own))
    return merge_fleets(*hosts)


@st.composite
def requests(draw):
    """Draw a request with a few amounts in separate groups."""
    groups = tuple(
        ResourceGroup(
            suffix=f"_{number}",
            resources={name: draw(st.integers(1, 4)) for name in draw(st.sets(st.sampled_from(CLASSES), min_size=1))},
        )
        for number in range(draw(st.integers(0, 3)))
    )
    policy = draw(st.sampled_from(["none", "isolate"]))
    wanted = small_request(vcpus=draw(st.integers(0, 2)), memory_mb=draw(st.integers(0, 3)), groups=groups)
    flavor = msgspec.structs.replace(wanted.flavor, extra_specs={"group_policy": policy})
    return msgspec.structs.replace(wanted, flavor=flavor)


@given(fleets(), requests(), st.integers(1, 9))
def test_capacity_of_nested_providers_equals_placing_one_by_one(fleet: Fleet, request, instances_max):
    roost = roost_on(
        settings=settings_of(enabled_filters=FILTERS, options={"max_instances_per_host": instances_max * 5})
    )
    roost.install(fleet)
    compare(roost, request)
