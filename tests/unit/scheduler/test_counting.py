import msgspec
import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request, ResourceGroup
from tests.support.fleets.worlds import aggregate, digest, group, host, hosts, joined, roost_with, uuid_named, wish


def by_host(found):
    return {each.host: each.count for each in found.by_host}


def test_what_is_used_up_first_is_told_for_each_host():
    roost = roost_with(host("a", VCPU=8, MEMORY_MB=100), host("b", VCPU=8, MEMORY_MB=5), host("c", VCPU=1))
    found = roost.capacity(wish(vcpus=2, memory_mb=2))
    assert (found.count, found.takers, found.hosts, found.adds_up) == (6, 2, 3, True)
    assert by_host(found) == {"a": 4, "b": 2, "c": 0}
    assert [(each.subject, each.hosts) for each in found.exhausted] == [("MEMORY_MB", 1), ("VCPU", 1)]
    assert [(each.reason, each.hosts) for each in found.unfit] == [("lack 2 MiB memory or more", 1)]


def test_what_hosts_only_report_is_said_not_to_be_counted():
    roost = roost_with(host("a", VCPU=8, PCPU=8, MEMORY_MB=100))
    assert roost.capacity(wish(vcpus=2)).warnings == []
    pinned = Flavor(name="pinned", vcpus=2, memory_mb=1, extra_specs={"hw:cpu_policy": "dedicated"})
    (warning,) = roost.capacity(Request(flavor=pinned)).warnings
    assert warning.endswith("is not counted: fewer may fit")


def test_members_of_an_anti_affinity_group_are_counted_by_their_limit():
    roost = roost_with(hosts(3), group("g", "anti-affinity", limit=2))
    roost.decide(wish(in_group="g"))
    found = roost.capacity(wish(in_group="g"))
    assert (found.count, sorted(by_host(found).values())) == (5, [1, 2, 2])
    assert [(each.subject, each.hosts) for each in found.exhausted] == [("server_group_anti_affinity", 3)]


def test_an_affinity_group_without_members_goes_to_one_host_and_each_could_be_it():
    roost = roost_with(host("a", VCPU=4, MEMORY_MB=32), host("b", VCPU=7, MEMORY_MB=32), group("g", "affinity"))
    found = roost.capacity(wish(in_group="g"))
    assert (found.count, found.adds_up, by_host(found)) == (7, False, {"a": 4, "b": 7})
    assert {each.subject: each.hosts for each in found.exhausted} == {"VCPU": 1, "server_group_affinity": 1}


def test_hosts_that_borrow_from_one_pool_do_not_add_up():
    pool = msgspec.structs.replace(
        host("pool", aggregates=["x"], DISK_GB=10).providers[0], traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"})
    )
    fleet = joined(aggregate("x"), host("a", aggregates=["x"]), host("b", aggregates=["x"]))
    roost = roost_with(msgspec.structs.replace(fleet, providers=[*fleet.providers, pool]))
    before = digest(roost.state)
    found = roost.capacity(wish(groups=(ResourceGroup(resources={"DISK_GB": 2}),)))
    assert (found.count, found.adds_up, by_host(found)) == (5, False, {"a": 5, "b": 5})
    assert [(each.name, each.count) for each in found.aggregates] == [("x", 5)]
    assert digest(roost.state) == before


def test_isolated_groups_are_served_as_first_fit_serves_them():
    # Three devices of three: the first two are used up together, though turns would have served four pairs.
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
    request = wish(groups=pair)
    isolated = msgspec.structs.replace(
        request, flavor=msgspec.structs.replace(request.flavor, extra_specs={"group_policy": "isolate"})
    )
    assert roost.capacity(isolated).count == 3
    assert [(each.subject, each.hosts) for each in roost.capacity(isolated).exhausted] == [("CUSTOM_DEVICE", 1)]
    assert roost.capacity(request).count == 4


def test_hosts_in_no_zone_are_in_the_default_zone():
    roost = roost_with(aggregate("e", availability_zone="east"), host("a", aggregates=["e"]), host("b"))
    found = roost.capacity(wish(), by=("zone",))
    assert [(each.name, each.hosts, each.count) for each in found.zones] == [("east", 1, 8), ("nova", 1, 8)]
    assert (found.aggregates, found.by_host) == ([], [])


def test_only_so_many_are_counted_as_the_limit_says():
    roost = roost_with(hosts(3), group("g", "affinity"))
    for request in (wish(), wish(in_group="g")):
        found = roost.capacity(request, limit=5)
        assert found.count == found.limit == max(by_host(found).values()) == 5
    with pytest.raises(BadRequest, match="the limit must be"):
        roost.capacity(wish(), limit=0)


def test_progress_is_told_where_instances_are_placed():
    roost = roost_with(host("a", VCPU=500, MEMORY_MB=1000), group("g", "affinity"))
    told = []
    assert roost.capacity(wish(in_group="g"), by=(), progress=lambda *steps: told.append(steps)).count == 500
    assert told[0] == (64, 500)
    assert all(0 < done <= total for done, total in told)


def test_what_is_said_of_several_requests_leaves_each_other_alone():
    roost = roost_with(hosts(2), group("g", "affinity"))
    requests = [wish(), wish(in_group="g"), wish(vcpus=8)]
    assert [found.count for found in roost.capacities(requests)] == [16, 8, 2]
