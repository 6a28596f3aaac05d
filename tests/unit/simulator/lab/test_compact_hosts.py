import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.fleet import Departure, Fleet
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.simulator.lab.compact_hosts import (
    Amounts,
    build_hosts,
    find_peak,
    host_amounts,
    lower_bound,
    parse_pattern,
)
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.room_fleets import room_host
from tests.support.fleets.worlds import hosts, merge_fleets

NOTHING = Fleet()


def arrival(name, vcpus, memory_mb):
    return Request(flavor=Flavor(name=name, vcpus=vcpus, memory_mb=memory_mb), instance_uuids=(uuid_named(name),))


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        (["8/64m"], "a host must be CORESc/RAMm"),
        (["0x8c/64m"], "1 or more of each kind"),
        (["900x8c/64m", "200x4c/8m"], "a mix must have 1..1,000 hosts"),
        (["0c/64m"], "cores and ram of a host must be 1.."),
    ],
)
def test_invalid_kinds_are_refused(kinds, problem):
    with pytest.raises(BadRequest, match=problem):
        parse_pattern(kinds)


def test_a_mix_is_repeated():
    fleet = build_hosts(NOTHING, parse_pattern(["2x8c/64m", "4c/16m"]), 4)
    assert host_amounts(fleet) == [Amounts(8, 64), Amounts(8, 64), Amounts(4, 16), Amounts(8, 64)]


def test_own_hosts_keep_their_order_and_their_trees():
    own = merge_fleets(hosts(3, VCPU=2), hosts(0))
    child = ProviderSpec(
        uuid=uuid_named("child"), name="child", parent_uuid=uuid_named("h2"), inventories={"VCPU": Inventory(total=5)}
    )
    own = Fleet(providers=[*own.providers, child], hosts=own.hosts)
    assert [host.host for host in build_hosts(own, (), 2).hosts] == ["h0", "h1"]
    assert [each.name for each in build_hosts(own, (), 2).providers] == ["h0", "h1"]
    assert [each.name for each in build_hosts(own, (), 3).providers] == ["h0", "h1", "h2", "child"]
    assert host_amounts(own)[2].cpus == 7


def test_amounts_of_hosts_include_overcommit_and_exclude_reserved_amounts():
    assert host_amounts(room_host("h", 10, 100, ratio=1.5, reserved=3)) == [Amounts(10, 97)]


def test_the_peak_of_each_amount_is_at_its_own_time():
    acts = [
        arrival("a", 8, 1),
        Departure(instance_uuids=(uuid_named("a"),)),
        arrival("b", 1, 50),
        arrival("c", 2, 10),
        Departure(instance_uuids=(uuid_named("unknown"),)),
    ]
    assert find_peak(acts) == Amounts(8, 60)


@pytest.mark.parametrize(
    ("peak", "kinds", "bound"),
    [
        (Amounts(16, 10), ["8c/64m"], 2),
        (Amounts(17, 10), ["8c/64m"], 3),
        (Amounts(1, 129), ["8c/64m"], 3),
        (Amounts(1, 1), ["8c/64m"], 1),
        (Amounts(13, 1), ["8c/64m", "4c/16m"], 3),
        (Amounts(12, 1), ["8c/64m", "4c/16m"], 2),
        (Amounts(24, 81), ["8c/64m", "4c/16m"], 4),
    ],
)
def test_fewer_hosts_than_the_bound_have_too_little(peak, kinds, bound):
    pattern = parse_pattern(kinds)
    assert lower_bound(peak, NOTHING, pattern) == bound
    for count in range(max(bound - 1, 1), bound + 1):
        amounts = host_amounts(build_hosts(NOTHING, pattern, count))
        suffices = sum(each.cpus for each in amounts) >= peak.cpus and (
            sum(each.memory_mb for each in amounts) >= peak.memory_mb
        )
        assert suffices == (count == bound)


def test_too_few_own_hosts_have_a_bound_above_their_number():
    assert lower_bound(Amounts(7, 0), hosts(3, VCPU=2, MEMORY_MB=8), ()) == 4
    assert lower_bound(Amounts(5, 0), hosts(3, VCPU=2, MEMORY_MB=8), ()) == 3
