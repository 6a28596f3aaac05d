"""Hosts that a question adds or removes: what goes with them, and what stays."""

import pytest

from roost.engine.columns.name_table import RowsByName
from roost.errors import BadRequest, OverBudget
from roost.model.evidence.capacity import AddedHosts, FleetChange
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostFacts
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.scheduler.explain import changed_fleet
from roost.scheduler.explain.changed_fleet import find_missing
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


@pytest.mark.parametrize(
    "change",
    [
        {"add_hosts": (AddedHosts(like="h0", count=10_000),)},
        {"without_hosts": tuple(f"h{number}" for number in range(9))},
    ],
)
def test_change_ends_with_the_budget_of_the_state(change):
    roost, left = roost_with(hosts(9)), 5

    def check():
        nonlocal left
        left -= 1
        if left < 0:
            raise OverBudget("the work on this request", seconds=1.0, limit="placement.question_budget_s")

    roost.state.check = check
    with pytest.raises(OverBudget):
        count(roost, small_request(), **change)
    assert left == -1


def test_number_of_added_providers_is_bounded(monkeypatch):
    monkeypatch.setattr(changed_fleet, "ADDED_PROVIDERS_MAX", 3)
    roost = roost_with(hosts(2))
    likes = (AddedHosts(like="h0", count=2), AddedHosts(like="h1", count=1))
    assert count(roost, small_request(), add_hosts=likes) > 0
    with pytest.raises(BadRequest, match="the added hosts have 4 providers, and at most 3 can be added"):
        count(roost, small_request(), add_hosts=(*likes, likes[1]))


class NodeNames(list):
    """Names that count the passes over them."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


def test_many_nodes_are_found_in_one_pass():
    roost = roost_with(hosts(20))
    state, names = roost.state, roost.state.hosts.nodes
    state.hosts.rows_of_name = RowsByName()  # services with other names than their nodes
    state.hosts.nodes = NodeNames(names)
    missing = find_missing(state, FleetChange(without_hosts=(*names, "nowhere")), default_zone="nova")
    assert missing is not None
    assert (missing.field, missing.name) == ("without_hosts[20]", "nowhere")
    assert state.hosts.nodes.passes == 1
