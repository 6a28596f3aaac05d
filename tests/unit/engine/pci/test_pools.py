"""Free devices of one host, and the device requests of instances."""

import pytest

from roost.engine.pci.pools import FreePools, choose_devices, supports
from tests.support.fleets.devices import ask, pool


@pytest.mark.parametrize(
    ("devices", "device_request", "has"),
    [
        (pool("AB"), ask({"product_id": "ab"}), True),
        (pool(), ask({"product_id": "b"}, {"product_id": "a"}), True),
        (pool(), ask({"product_id": "a", "physical_network": None}), True),
        (pool(tags={"physical_network": "red"}), ask({"physical_network": None}), False),
        (pool(tags={"caps": ("tx", "rx")}), ask({"caps": ("rx",)}), True),
        (pool(tags={"caps": ("tx",)}), ask({"caps": ("rx", "tx")}), False),
        (pool(), ask({"product_id": "a", "resource_class": "X", "traits": "y"}), True),
        (pool(dev_type="type-PF"), ask(), False),
        (pool(dev_type="type-PF"), ask({"dev_type": "type-pf"}), False),
        (pool(dev_type="type-PF"), ask({"dev_type": "type-PF"}), True),
        (pool(dev_type="vdpa"), ask(), False),
        (pool(dev_type="vdpa"), ask({"dev_type": "vdpa"}), True),
        (pool(tags={"remote_managed": "yes"}), ask(), False),
        (pool(tags={"remote_managed": "no"}), ask(), True),
        (pool(tags={"remote_managed": "True"}), ask({"remote_managed": "true"}), True),
        (pool(), ask({"live_migratable": "true"}, {"product_id": "a"}), True),
        (pool(tags={"live_migratable": "false"}), ask({"live_migratable": "false"}), True),
        (pool(), ask({"live_migratable": "true"}), False),
    ],
)
def test_pool_supports_only_matching_requests(devices, device_request, has):
    assert supports([devices], [device_request]) is has


def test_pool_with_the_fewest_tags_is_used_first():
    pools = [pool(tags={"physical_network": "red"}), pool()]
    free = FreePools(pools)
    assert free.take(ask())
    assert free.counts == [1, 0]
    assert free.take(ask({"physical_network": "red"}))
    assert not free.take(ask())


NEAR, FAR, UNKNOWN = pool(numa_node=0), pool(numa_node=1), pool()
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
        ("socket", [pool(numa_node=2)], SOCKETS, False),
        ("socket", [FAR], {0: 0, 1: None}, False),
        ("socket", [NEAR], {0: None}, True),
        ("socket", [UNKNOWN], SOCKETS, False),
    ],
)
def test_numa_policy_limits_the_distance_of_devices(policy, pools, sockets, has):
    device_request = ask(numa_policy=policy)
    assert supports(pools, [device_request], cells=[0], sockets=sockets) is has
    assert supports(pools, [device_request], cells=None)


def test_near_devices_are_taken_before_far_ones():
    free = FreePools([FAR, UNKNOWN, pool(numa_node=0, tags={"x": "y"})])
    assert free.take(ask(numa_policy="preferred", count=2), cells=[0])
    assert free.counts == [1, 0, 0]


def test_devices_are_taken_from_the_providers_of_the_mapping():
    pools = [pool(count=2, rp_uuids=("one",)), pool(count=1, rp_uuids=("two",))]
    device_request = ask(count=2, request_id="r")
    assert supports(pools, [device_request], mappings={"r-0": ["one"], "r-1": ["two"]})
    assert not supports(pools, [device_request], mappings={"r-0": ["two"], "r-1": ["two"]})
    free = FreePools(pools)
    assert free.take(device_request, mappings={"r-0": ["one"], "r-1": ["two"]})
    assert free.counts == [1, 0]
    port = ask(count=2, request_id="r", source="port")
    assert supports(pools, [port], mappings={"r-0": ["two"], "r-1": ["two"]})
    assert supports(pools, [device_request], mappings={"s-0": ["two"], "s-1": ["two"]})


def test_choose_devices_returns_the_count_of_each_pool():
    pools = [pool(count=1, numa_node=0), pool(count=3), pool("b")]
    options = {"cells": [0], "sockets": {}, "mappings": {}}
    devices = choose_devices(pools, [ask(count=3, numa_policy="preferred")], **options)
    assert devices == (pool(count=1, numa_node=0), pool(count=2))
    assert choose_devices(pools, [], **options) == ()
    assert choose_devices(pools, [ask(), ask(count=4)], **options) is None
