"""Whether a guest is within the limits that filters told its host."""

import pytest

from roost.compute.inventory.guest_limits import flavor_amounts, lack_of_amounts, used_amounts
from roost.compute.inventory.host_use import HostUse, Size
from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.work.guest_use import GuestAmounts, GuestNeeds

SMALL = Flavor(name="small", vcpus=2, memory_mb=512, root_gb=10, ephemeral_gb=5, swap=512)
USED = GuestAmounts(vcpu=6, memory_mb=1536, disk_gb=84)
LIMITS = {"vcpu": 8.0, "memory_mb": 2048.0, "disk_gb": 100.0}
OWN, CHILD, SHARED = "root", "cell", "pool"


def lacking(**changes):
    """Say what a small guest lacks where some limits are others."""
    return lack_of_amounts({**LIMITS, **changes}, flavor_amounts(SMALL), used=USED)


def test_a_guest_may_be_up_to_the_limits_and_not_beyond_them():
    assert lacking() == []
    assert lacking(vcpu=7.5) == ["the host lacks room for 2 virtual CPUs: 6 of 7.5 that it may give out are in use"]
    assert lacking(memory_mb=2047) == [
        "the host lacks room for 512 MiB memory: 1,536 of 2,047 that it may give out are in use"
    ]
    assert lacking(disk_gb=99.25) == [
        "the host lacks room for 15.5 GiB disk: 84 of 99.25 that it may give out are in use"
    ]
    assert len(lacking(vcpu=1, memory_mb=1, disk_gb=1)) == 3


def test_what_no_limit_is_told_of_is_not_looked_at():
    assert lack_of_amounts({}, flavor_amounts(SMALL), used=GuestAmounts(vcpu=10**9)) == []
    assert lack_of_amounts({"instances": 0.0}, flavor_amounts(SMALL), used=USED) == []


@pytest.mark.parametrize("told", [True, "8", {"vcpu": 8.0}])
def test_a_limit_that_is_no_number_is_refused(told):
    with pytest.raises(BadRequest, match="limits of vcpu cannot be meant: "):
        lacking(vcpu=told)


def test_what_is_in_use_is_what_is_held_of_the_hosts_own_providers():
    held = {
        OWN: {"PCPU": 2, "DISK_GB": 3, "VGPU": 1},
        CHILD: {"VCPU": 1, "MEMORY_MB": 64},
        SHARED: {"DISK_GB": 40},
    }
    assert used_amounts(held, {OWN, CHILD}) == GuestAmounts(vcpu=3, memory_mb=64, disk_gb=3)
    assert used_amounts(held, ()) == GuestAmounts()


# --- on a host ---

LARGE = Size(flavor=Flavor(name="large", memory_mb=600), allocations={OWN: {"MEMORY_MB": 600}})
BOUND = GuestNeeds(limits={"memory_mb": 1000.0})


def a_host(**more):
    return HostUse(HostFacts(), providers={OWN: {}}, **more)


def refused(host, holder="b", **more):
    """Say whether a large guest more is refused."""
    admission = (host.claim_move if more else host.claim)(holder, BOUND, size=LARGE, **more)
    assert (admission.use is None) == ("600 MiB memory: 600 of 1,000 that" in admission.reason)
    return admission.use is None


@pytest.mark.shows("S009")
def test_of_two_guests_that_raced_for_the_same_room_the_first_to_come_has_it():
    host = a_host()
    assert not refused(host, "a")
    assert refused(host)
    host.give_back("a")
    assert not refused(host)


def test_a_guest_that_comes_again_is_counted_once_also_by_a_host_that_starts_again():
    host = a_host()
    for _ in range(2):
        assert not refused(host, "a")
    again = a_host(instances=host.uses)
    assert not refused(again, "a")
    assert refused(again)


def test_a_move_on_its_own_host_counts_as_both_guests_and_no_more():
    host = a_host()
    host.claim("a", GuestNeeds(), size=LARGE)
    assert refused(host, "a", migration="m")
    twice = GuestNeeds(limits={"memory_mb": 1200.0})
    for _ in range(2):
        assert host.claim_move("a", twice, size=LARGE, migration="m").use is not None
    host.hand_over("m", "a")
    assert host.claim("b", twice, size=LARGE).use is not None


def test_guests_on_a_host_that_they_were_forced_to_are_counted():
    host = a_host()
    host.claim("a", GuestNeeds(), size=LARGE)
    assert refused(host)


def test_what_a_guest_holds_elsewhere_is_not_counted_until_that_is_the_hosts():
    host = HostUse(HostFacts())
    assert not refused(host, "a")
    assert not refused(host)
    host.tell(HostFacts(), providers={OWN: {}})
    assert not refused(host, "a")
    assert refused(host)
