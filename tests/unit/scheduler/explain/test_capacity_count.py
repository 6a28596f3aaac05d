import msgspec
import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request, ResourceGroup
from tests.support.fleets.worlds import (
    aggregate,
    digest,
    group,
    host,
    hosts,
    merge_fleets,
    roost_with,
    small_request,
    uuid_named,
)


def by_host(capacity):
    return {each.host: each.count for each in capacity.by_host}


def test_capacity_names_the_exhausted_resource_of_each_host():
    roost = roost_with(host("a", VCPU=8, MEMORY_MB=100), host("b", VCPU=8, MEMORY_MB=5), host("c", VCPU=1))
    capacity = roost.capacity(small_request(vcpus=2, memory_mb=2))
    assert (capacity.count, capacity.takers, capacity.hosts, capacity.adds_up) == (6, 2, 3, True)
    assert by_host(capacity) == {"a": 4, "b": 2, "c": 0}
    assert [(each.subject, each.hosts) for each in capacity.exhausted] == [("MEMORY_MB", 1), ("VCPU", 1)]
    assert [(each.reason, each.hosts) for each in capacity.unfit] == [("lack 2 MiB memory or more", 1)]


def test_capacity_warns_that_reported_facts_are_not_counted():
    roost = roost_with(host("a", VCPU=8, PCPU=8, MEMORY_MB=100))
    assert roost.capacity(small_request(vcpus=2)).warnings == []
    dedicated = Flavor(name="pinned", vcpus=2, memory_mb=1, extra_specs={"hw:cpu_policy": "dedicated"})
    (warning,) = roost.capacity(Request(flavor=dedicated)).warnings
    assert warning.endswith("are not counted: fewer instances may fit")


def test_capacity_respects_the_anti_affinity_limit():
    roost = roost_with(hosts(3), group("g", "anti-affinity", limit=2))
    roost.decide(small_request(in_group="g"))
    capacity = roost.capacity(small_request(in_group="g"))
    assert (capacity.count, sorted(by_host(capacity).values())) == (5, [1, 2, 2])
    assert [(each.subject, each.hosts) for each in capacity.exhausted] == [("server_group_anti_affinity", 3)]


def test_capacity_of_an_empty_affinity_group_is_that_of_one_host():
    roost = roost_with(host("a", VCPU=4, MEMORY_MB=32), host("b", VCPU=7, MEMORY_MB=32), group("g", "affinity"))
    capacity = roost.capacity(small_request(in_group="g"))
    assert (capacity.count, capacity.adds_up, by_host(capacity)) == (7, False, {"a": 4, "b": 7})
    assert {each.subject: each.hosts for each in capacity.exhausted} == {"VCPU": 1, "server_group_affinity": 1}


def test_counts_of_hosts_with_one_shared_pool_do_not_add_up():
    pool = msgspec.structs.replace(
        host("pool", aggregates=["x"], DISK_GB=10).providers[0], traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"})
    )
    fleet = merge_fleets(aggregate("x"), host("a", aggregates=["x"]), host("b", aggregates=["x"]))
    roost = roost_with(msgspec.structs.replace(fleet, providers=[*fleet.providers, pool]))
    before = digest(roost.state)
    capacity = roost.capacity(small_request(groups=(ResourceGroup(resources={"DISK_GB": 2}),)))
    assert (capacity.count, capacity.adds_up, by_host(capacity)) == (5, False, {"a": 5, "b": 5})
    assert [(each.name, each.count) for each in capacity.aggregates] == [("x", 5)]
    assert digest(roost.state) == before


def test_isolated_groups_are_counted_by_first_fit():
    # Three providers of three: first fit exhausts the first two together. Taking turns would serve four pairs.
    root = host("a", VCPU=99, MEMORY_MB=99)
    devices = [
        ProviderSpec(
            uuid=uuid_named(f"d{number}"),
            name=f"d{number}",
            parent_uuid=uuid_named("a"),
            inventories={"CUSTOM_DEVICE": Inventory(total=3)},
        )
        for number in range(3)
    ]
    roost = roost_with(msgspec.structs.replace(root, providers=[*root.providers, *devices]))
    pair = tuple(ResourceGroup(suffix=f"_{number}", resources={"CUSTOM_DEVICE": 1}) for number in range(2))
    request = small_request(groups=pair)
    isolated = msgspec.structs.replace(
        request, flavor=msgspec.structs.replace(request.flavor, extra_specs={"group_policy": "isolate"})
    )
    assert roost.capacity(isolated).count == 3
    assert [(each.subject, each.hosts) for each in roost.capacity(isolated).exhausted] == [("CUSTOM_DEVICE", 1)]
    assert roost.capacity(request).count == 4


def test_hosts_without_a_zone_count_in_the_default_zone():
    roost = roost_with(aggregate("e", availability_zone="east"), host("a", aggregates=["e"]), host("b"))
    capacity = roost.capacity(small_request(), by=("zone",))
    assert [(each.name, each.hosts, each.count) for each in capacity.zones] == [("east", 1, 8), ("nova", 1, 8)]
    assert (capacity.aggregates, capacity.by_host) == ([], [])


def test_count_stops_at_the_limit():
    roost = roost_with(hosts(3), group("g", "affinity"))
    for request in (small_request(), small_request(in_group="g")):
        capacity = roost.capacity(request, limit=5)
        assert capacity.count == capacity.limit == max(by_host(capacity).values()) == 5
    with pytest.raises(BadRequest, match="the limit must be"):
        roost.capacity(small_request(), limit=0)


def test_progress_is_reported_while_instances_are_placed():
    roost = roost_with(host("a", VCPU=500, MEMORY_MB=1000), group("g", "affinity"))
    reports = []
    request = small_request(in_group="g")
    (found,) = roost.capacities([request], by=(), progress=lambda *steps: reports.append(steps))
    assert found.count == 500
    assert reports[0] == (64, 500)
    assert all(0 < done <= total for done, total in reports)


def test_capacities_of_several_requests_are_independent():
    roost = roost_with(hosts(2), group("g", "affinity"))
    requests = [small_request(), small_request(in_group="g"), small_request(vcpus=8)]
    assert [capacity.count for capacity in roost.capacities(requests)] == [16, 8, 2]
