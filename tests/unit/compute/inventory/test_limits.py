"""Limits that filters set for a host, checked when a guest is claimed."""

import pytest

from roost.compute.inventory.guest_limits import amounts_in_use, find_shortfalls, flavor_amounts
from roost.compute.inventory.host_use import HostUse, Size
from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.work.guest_use import GuestAmounts, GuestNeeds

SMALL = Flavor(name="small", vcpus=2, memory_mb=512, root_gb=10, ephemeral_gb=5, swap=512)
USED = GuestAmounts(vcpu=6, memory_mb=1536, disk_gb=84)
LIMITS = {"vcpu": 8.0, "memory_mb": 2048.0, "disk_gb": 100.0}
OWN, CHILD, SHARED = "root", "cell", "pool"


def problems(**changes):
    """Return the problems of a small guest under changed limits."""
    return find_shortfalls({**LIMITS, **changes}, flavor_amounts(SMALL), used=USED)


def test_guest_may_reach_the_limits_but_not_exceed_them():
    assert problems() == []
    assert problems(vcpu=7.5) == ["the host lacks room for 2 virtual CPUs: 6 of 7.5 that it may give out are in use"]
    assert problems(memory_mb=2047) == [
        "the host lacks room for 512 MiB memory: 1,536 of 2,047 that it may give out are in use"
    ]
    assert problems(disk_gb=99.25) == [
        "the host lacks room for 15.5 GiB disk: 84 of 99.25 that it may give out are in use"
    ]
    assert len(problems(vcpu=1, memory_mb=1, disk_gb=1)) == 3


def test_amounts_without_a_limit_are_not_checked():
    assert find_shortfalls({}, flavor_amounts(SMALL), used=GuestAmounts(vcpu=10**9)) == []
    assert find_shortfalls({"instances": 0.0}, flavor_amounts(SMALL), used=USED) == []


@pytest.mark.parametrize("limit", [True, "8", {"vcpu": 8.0}])
def test_limit_that_is_not_a_number_is_refused(limit):
    with pytest.raises(BadRequest, match="the limit of vcpu is invalid: "):
        problems(vcpu=limit)


def test_used_amounts_count_only_the_hosts_own_providers():
    held = {
        OWN: {"PCPU": 2, "DISK_GB": 3, "VGPU": 1},
        CHILD: {"VCPU": 1, "MEMORY_MB": 64},
        SHARED: {"DISK_GB": 40},
    }
    assert amounts_in_use(held, {OWN, CHILD}) == GuestAmounts(vcpu=3, memory_mb=64, disk_gb=3)
    assert amounts_in_use(held, ()) == GuestAmounts()


# --- on a host ---

LARGE = Size(flavor=Flavor(name="large", memory_mb=600), allocations={OWN: {"MEMORY_MB": 600}})
BOUND = GuestNeeds(limits={"memory_mb": 1000.0})


def new_host(**more):
    return HostUse(HostFacts(), providers={OWN: {}}, **more)


def is_refused(host, holder="b", **more):
    """Return whether one more large guest is refused."""
    admission = (host.claim_move if more else host.claim)(holder, BOUND, size=LARGE, **more)
    assert (admission.use is None) == ("600 MiB memory: 600 of 1,000 that" in admission.reason)
    return admission.use is None


@pytest.mark.shows("S009")
def test_first_of_two_racing_guests_gets_the_last_room():
    host = new_host()
    assert not is_refused(host, "a")
    assert is_refused(host)
    host.release("a")
    assert not is_refused(host)


def test_repeated_claim_counts_once_even_after_a_restart():
    host = new_host()
    for _ in range(2):
        assert not is_refused(host, "a")
    again = new_host(instances=host.uses)
    assert not is_refused(again, "a")
    assert is_refused(again)


def test_resize_on_the_same_host_counts_both_sizes():
    host = new_host()
    host.claim("a", GuestNeeds(), size=LARGE)
    assert is_refused(host, "a", migration="m")
    twice = GuestNeeds(limits={"memory_mb": 1200.0})
    for _ in range(2):
        assert host.claim_move("a", twice, size=LARGE, migration="m").use is not None
    host.hand_over("m", "a")
    assert host.claim("b", twice, size=LARGE).use is not None


def test_guests_claimed_without_limits_are_counted():
    host = new_host()
    host.claim("a", GuestNeeds(), size=LARGE)
    assert is_refused(host)


def test_allocations_count_once_the_provider_belongs_to_the_host():
    host = HostUse(HostFacts())
    assert not is_refused(host, "a")
    assert not is_refused(host)
    host.update_facts(HostFacts(), providers={OWN: {}})
    assert not is_refused(host, "a")
    assert is_refused(host)
