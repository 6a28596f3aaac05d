"""Free devices of one host, and the device requests of instances."""

import pytest

from roost.engine.pci.pools import FreePools, choose_devices, supports
from tests.support.fleets.devices import pci_pool, pci_request


@pytest.mark.parametrize(
    ("devices", "device_request", "has"),
    [
        (pci_pool("AB"), pci_request({"product_id": "ab"}), True),
        (pci_pool(), pci_request({"product_id": "b"}, {"product_id": "a"}), True),
        (pci_pool(), pci_request({"product_id": "a", "physical_network": None}), True),
        (pci_pool(tags={"physical_network": "red"}), pci_request({"physical_network": None}), False),
        (pci_pool(tags={"caps": ("tx", "rx")}), pci_request({"caps": ("rx",)}), True),
        (pci_pool(tags={"caps": ("tx",)}), pci_request({"caps": ("rx", "tx")}), False),
        (pci_pool(), pci_request({"product_id": "a", "resource_class": "X", "traits": "y"}), True),
        (pci_pool(dev_type="type-PF"), pci_request(), False),
        (pci_pool(dev_type="type-PF"), pci_request({"dev_type": "type-pf"}), False),
        (pci_pool(dev_type="type-PF"), pci_request({"dev_type": "type-PF"}), True),
        (pci_pool(dev_type="vdpa"), pci_request(), False),
        (pci_pool(dev_type="vdpa"), pci_request({"dev_type": "vdpa"}), True),
        (pci_pool(tags={"remote_managed": "yes"}), pci_request(), False),
        (pci_pool(tags={"remote_managed": "no"}), pci_request(), True),
        (pci_pool(tags={"remote_managed": "True"}), pci_request({"remote_managed": "true"}), True),
        (pci_pool(), pci_request({"live_migratable": "true"}, {"product_id": "a"}), True),
        (pci_pool(tags={"live_migratable": "false"}), pci_request({"live_migratable": "false"}), True),
        (pci_pool(), pci_request({"live_migratable": "true"}), False),
    ],
)
def test_pool_supports_only_matching_requests(devices, device_request, has):
    assert supports([devices], [device_request]) is has


def test_pool_with_the_fewest_tags_is_used_first():
    pools = [pci_pool(tags={"physical_network": "red"}), pci_pool()]
    free = FreePools(pools)
    assert free.take(pci_request())
    assert free.counts == [1, 0]
    assert free.take(pci_request({"physical_network": "red"}))
    assert not free.take(pci_request())


NEAR, FAR, UNKNOWN = pci_pool(numa_node=0), pci_pool(numa_node=1), pci_pool()
SOCKETS = {0: 0, 1: 0, 2: 1}


@pytest.mark.parametrize(
    ("policy", "pools", "sockets", "has"),
    [
        ("required", [NEAR], {}, True),
        ("required", [UNKNOWN, FAR], {}, False),
        ("legacy", [UNKNOWN], {}, True),
        ("legacy", [FAR], {}, False),
        ("preferred", [FAR], {}, True),
        ("socket", [FAR], SOCKETS, True),
        ("socket", [pci_pool(numa_node=2)], SOCKETS, False),
        ("socket", [FAR], {0: 0, 1: None}, False),
        ("socket", [NEAR], {0: None}, True),
        ("socket", [UNKNOWN], SOCKETS, False),
    ],
)
def test_numa_policy_limits_the_distance_of_devices(policy, pools, sockets, has):
    device_request = pci_request(numa_policy=policy)
    assert supports(pools, [device_request], cells=[0], sockets=sockets) is has
    assert supports(pools, [device_request], cells=None)


def test_near_devices_are_taken_before_far_ones():
    free = FreePools([FAR, UNKNOWN, pci_pool(numa_node=0, tags={"x": "y"})])
    assert free.take(pci_request(numa_policy="preferred", count=2), cells=[0])
    assert free.counts == [1, 0, 0]


def test_devices_are_taken_from_the_providers_of_the_mapping():
    pools = [pci_pool(count=2, rp_uuids=("one",)), pci_pool(count=1, rp_uuids=("two",))]
    device_request = pci_request(count=2, request_id="r")
    assert supports(pools, [device_request], mappings={"r-0": ["one"], "r-1": ["two"]})
    assert not supports(pools, [device_request], mappings={"r-0": ["two"], "r-1": ["two"]})
    free = FreePools(pools)
    assert free.take(device_request, mappings={"r-0": ["one"], "r-1": ["two"]})
    assert free.counts == [1, 0]
    port = pci_request(count=2, request_id="r", source="port")
    assert supports(pools, [port], mappings={"r-0": ["two"], "r-1": ["two"]})
    assert supports(pools, [device_request], mappings={"s-0": ["two"], "s-1": ["two"]})


def test_choose_devices_returns_the_count_of_each_pool():
    pools = [pci_pool(count=1, numa_node=0), pci_pool(count=3), pci_pool("b")]
    options = {"cells": [0], "sockets": {}, "mappings": {}}
    devices = choose_devices(pools, [pci_request(count=3, numa_policy="preferred")], **options)
    assert devices == (pci_pool(count=1, numa_node=0), pci_pool(count=2))
    assert choose_devices(pools, [], **options) == ()
    assert choose_devices(pools, [pci_request(), pci_request(count=4)], **options) is None
