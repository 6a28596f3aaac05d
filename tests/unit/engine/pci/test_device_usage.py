"""Pools of a host without the devices of its guests."""

import pytest

from roost.engine.pci.device_usage import subtract_devices
from tests.support.fleets.devices import pci_pool


def counts(pools, *devices):
    """Return the number of free devices in each pool."""
    result = subtract_devices(pools, devices)
    assert [each.product_id for each in result] == [each.product_id for each in pools]
    return [each.count for each in result]


def test_devices_are_subtracted_from_their_own_pools():
    pools = [pci_pool(count=4), pci_pool("b", count=3), pci_pool(count=2, numa_node=1)]
    assert counts(pools) == [4, 3, 2]
    assert counts(pools, pci_pool(count=1), pci_pool(count=2, numa_node=1), pci_pool(count=2)) == [1, 3, 0]


def test_identical_pools_are_used_one_after_the_other():
    assert counts([pci_pool(count=2), pci_pool(count=2)], pci_pool(count=3)) == [0, 1]


@pytest.mark.parametrize("properties", [{"tags": {"color": "red"}}, {"rp_uuids": ("one",)}])
def test_pool_with_changed_properties_is_found_by_its_devices(properties):
    assert counts([pci_pool(count=2, **properties), pci_pool(count=2, numa_node=1)], pci_pool()) == [1, 2]
    both = [pci_pool(count=1), pci_pool(count=2, tags={"speed": "high"})]
    # A device whose pool still exists is taken from that pool, in any order of the devices.
    assert (
        counts(both, pci_pool(), pci_pool(**properties)) == counts(both, pci_pool(**properties), pci_pool()) == [0, 1]
    )


def test_devices_without_a_pool_on_the_host_are_ignored():
    assert counts([pci_pool(count=1), pci_pool("b")], pci_pool(count=3), pci_pool("c")) == [0, 1]
    assert counts([pci_pool(address="0000:00:01.0")], pci_pool(address="0000:00:02.0")) == [1]
