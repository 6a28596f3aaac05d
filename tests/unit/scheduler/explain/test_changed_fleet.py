"""Hosts that a question adds or removes: what goes with them, and what stays."""

from roost.model.evidence.capacity import AddedHosts, FleetChange
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostFacts
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import aggregate, group, host, hosts, roost_with, settings_of, small_request


def count(roost, request, **change):
    return roost.capacity(request, change=FleetChange(**change)).count


def test_removed_host_takes_its_instances_out_of_their_server_group():
    roost = roost_with(hosts(2), group("near", "affinity"))
    request = small_request(in_group="near", vcpus=2)
    (pick,) = roost.decide(request).picks
    assert roost.capacity(request).count == 3
    assert count(roost, request, without_hosts=(pick.host,)) == 4


def test_removed_host_frees_what_its_instances_hold_elsewhere():
    shared = ProviderSpec(
        uuid=uuid_named("disk"),
        name="disk",
        inventories={"DISK_GB": Inventory(total=100)},
        traits=frozenset(["MISC_SHARES_VIA_AGGREGATE"]),
        aggregates=frozenset([uuid_named("pool")]),
    )
    fleet = [host(name, aggregates=["pool"], VCPU=8, MEMORY_MB=32) for name in ("h0", "h1")]
    roost = roost_with(aggregate("pool"), Fleet(providers=[shared]), *fleet)
    request = Request(flavor=Flavor(name="large", vcpus=1, memory_mb=1, root_gb=40))
    (pick,) = roost.decide(request).picks
    assert roost.capacity(request).count == 1
    assert count(roost, request, without_hosts=(pick.host,)) == 2


def test_added_host_is_in_the_zone_of_the_other_and_has_no_work():
    busy = HostFacts(num_io_ops=8, failed_builds=3)
    zone = aggregate("rack", availability_zone="east")
    roost = roost_with(
        zone,
        host("h0", aggregates=["rack"], facts=busy),
        host("h1"),
        settings=settings_of(enabled_filters=["availability_zone", "io_ops"]),
    )
    request = small_request(availability_zone="east")
    assert roost.capacity(request).count == 0
    assert count(roost, request, add_hosts=(AddedHosts(like="h0", count=3),)) == 24


def test_host_can_be_like_one_that_is_removed():
    roost = roost_with(aggregate("rack", availability_zone="east"), host("h0", aggregates=["rack"]), host("h1"))
    change = {"without_zones": ("east",), "add_hosts": (AddedHosts(like="h0", count=2),)}
    assert count(roost, small_request(), **change) == 24


def test_default_zone_can_be_removed():
    roost = roost_with(aggregate("rack", availability_zone="east"), host("h0", aggregates=["rack"]), host("h1"))
    assert count(roost, small_request(), without_zones=("nova",)) == 8
