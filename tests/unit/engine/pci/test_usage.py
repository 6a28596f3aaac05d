"""Pools of a host beside the devices of guests."""

import pytest

from roost.engine.pci.device_usage import subtract_devices
from tests.support.fleets.devices import pool


def counts(pools, *devices):
    """Give how many devices each pool has left."""
    found = subtract_devices(pools, devices)
    assert [each.product_id for each in found] == [each.product_id for each in pools]
    return [each.count for each in found]


def test_devices_are_taken_from_the_pools_that_they_are_of():
    pools = [pool(count=4), pool("b", count=3), pool(count=2, numa_node=1)]
    assert counts(pools) == [4, 3, 2]
    assert counts(pools, pool(count=1), pool(count=2, numa_node=1), pool(count=2)) == [1, 3, 0]


def test_pools_that_are_told_apart_by_nothing_are_taken_one_after_the_other():
    assert counts([pool(count=2), pool(count=2)], pool(count=3)) == [0, 1]


@pytest.mark.parametrize("told", [{"tags": {"color": "red"}}, {"rp_uuids": ("one",)}])
def test_a_pool_that_is_told_anew_is_found_by_what_its_devices_are(told):
    assert counts([pool(count=2, **told), pool(count=2, numa_node=1)], pool()) == [1, 2]
    both = [pool(count=1), pool(count=2, tags={"speed": "high"})]
    # Whoever's pool is still there has its own devices, in whatever order guests are named.
    assert counts(both, pool(), pool(**told)) == counts(both, pool(**told), pool()) == [0, 1]


def test_devices_that_the_host_has_no_more_are_passed_over():
    assert counts([pool(count=1), pool("b")], pool(count=3), pool("c")) == [0, 1]
    assert counts([pool(address="0000:00:01.0")], pool(address="0000:00:02.0")) == [1]
