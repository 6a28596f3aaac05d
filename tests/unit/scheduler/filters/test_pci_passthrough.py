import pytest

from roost.model.host import HostFacts, PciPool
from roost.model.pci import PciRequest
from roost.scheduler.filters.pci_passthrough import PciPassthrough
from roost.scheduler.pci.pools import Free, supports
from roost.scheduler.rules import NoOptions
from roost.scheduler.spec import Spec
from tests.fleets import fleet, hosts_of, spec

RULE = PciPassthrough(NoOptions())


def pool(product="a", count=1, **more):
    """Give a pool of devices."""
    tags = more.pop("tags", {})
    return PciPool(vendor_id="8086", product_id=product, count=count, tags=tags, **more)


def ask(*alternatives, count=1, **more):
    """Give a request for devices of some product, or of what alternatives say."""
    return PciRequest(alternatives=alternatives or ({"product_id": "a"},), count=count, **more)


def wants(*requests):
    """Give a request with these devices."""
    return Spec(spec().request, now_s=0.0, pci_requests=requests)


@pytest.mark.shows("S032")
def test_hosts_have_the_devices_of_all_requests():
    state = fleet(
        HostFacts(pci_pools=(pool(count=2),)), HostFacts(pci_pools=(pool(), pool("b"))), HostFacts(),
        HostFacts(pci_pools=(pool(), pool(tags={"x": "y"}))),
    )  # fmt: skip
    wanted = wants(ask(), ask(name="card"))
    assert RULE.keep(hosts_of(state), wanted).tolist() == [True, False, False, True]
    assert RULE.keep(hosts_of(state, [3, 1]), wanted).tolist() == [True, False]
    assert RULE.tell(hosts_of(state, [1, 2]), wanted) == ["", "has none of 1 of product_id=a"]
    assert RULE.reason(wanted) == "lack free PCI devices: 1 of product_id=a, 1 card"
    assert RULE.reads(wanted) == "facts"
    assert not RULE.concerns(spec())


def test_requests_that_want_the_same_share_a_verdict():
    assert RULE.looks_at(wants(ask(request_id="x"))) == RULE.looks_at(wants(ask(request_id="y")))
    assert RULE.looks_at(wants(ask())) != RULE.looks_at(wants(ask(count=2)))


@pytest.mark.parametrize(
    ("devices", "wanted", "has"),
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
def test_a_pool_will_do_or_not(devices, wanted, has):
    assert supports([devices], [wanted]) is has


def test_devices_of_which_least_is_said_go_first():
    pools = [pool(tags={"physical_network": "red"}), pool()]
    free = Free(pools)
    assert free.take(ask())
    assert free.counts == [1, 0]
    assert free.take(ask({"physical_network": "red"}))
    assert not free.take(ask())


NEAR, FAR, NOWHERE = pool(numa_node=0), pool(numa_node=1), pool()
SOCKETS = {0: 0, 1: 0, 2: 1}


@pytest.mark.parametrize(
    ("policy", "pools", "sockets", "has"),
    [
        ("required", [NEAR], {}, True),
        ("required", [NOWHERE, FAR], {}, False),
        ("legacy", [NOWHERE], {}, True),
        ("legacy", [FAR], {}, False),
        ("preferred", [FAR], {}, True),
        ("socket", [FAR], SOCKETS, True),
        ("socket", [pool(numa_node=2)], SOCKETS, False),
        ("socket", [FAR], {0: 0, 1: None}, False),
        ("socket", [NEAR], {0: None}, True),
        ("socket", [NOWHERE], SOCKETS, False),
    ],
)
def test_devices_are_as_near_as_the_policy_wants(policy, pools, sockets, has):
    wanted = ask(numa_policy=policy)
    assert supports(pools, [wanted], cells=[0], sockets=sockets) is has
    assert supports(pools, [wanted], cells=None)


def test_near_devices_are_taken_before_far_ones():
    free = Free([FAR, NOWHERE, pool(numa_node=0, tags={"x": "y"})])
    assert free.take(ask(numa_policy="preferred", count=2), cells=[0])
    assert free.counts == [1, 0, 0]


def test_devices_are_taken_from_the_providers_of_the_mapping():
    pools = [pool(count=2, rp_uuids=("one",)), pool(count=1, rp_uuids=("two",))]
    wanted = ask(count=2, request_id="r")
    assert supports(pools, [wanted], mappings={"r-0": ["one"], "r-1": ["two"]})
    assert not supports(pools, [wanted], mappings={"r-0": ["two"], "r-1": ["two"]})
    free = Free(pools)
    assert free.take(wanted, mappings={"r-0": ["one"], "r-1": ["two"]})
    assert free.counts == [1, 0]
    port = ask(count=2, request_id="r", source="port")
    assert supports(pools, [port], mappings={"r-0": ["two"], "r-1": ["two"]})
    assert supports(pools, [wanted], mappings={"s-0": ["two"], "s-1": ["two"]})
