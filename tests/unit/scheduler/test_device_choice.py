"""Weighers that choose among the devices of a host, and weighers with kept raw weights."""

import msgspec
import numpy as np
import pytest

from roost.app import Roost
from roost.model.flavor import Flavor
from roost.model.fleet import Departure, Fleet
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request, ResourceGroup
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import HostsAlone, NoOptions, OrdersProviders, Rules, implements
from roost.scheduler.framework.sandbox import sandbox_weigher
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import FixedClock, SeededRandom, chosen_hosts, host, settings_of, uuid_named

GPU = "CUSTOM_GPU"


class NewWeights(BaseWeigher[NoOptions]):
    """Prefer hosts with little free, and the GPU with the least free amount; every raw weight is computed anew."""

    name = "fullest_gpu"
    aggregate_key = "fullest_gpu"
    multiplier = 1.0

    def __init__(self):
        super().__init__(NoOptions())
        self.views = []  # the number of hosts at each call

    def raw(self, hosts, spec):
        """Return the free amount, negated."""
        self.views.append(len(hosts))
        providers, free = hosts.class_rows(GPU)
        return -np.where(providers >= 0, free, 0).sum(axis=1).astype(np.float64)

    def provider_costs(self, host, spec, *, resource_class, amount):
        """Return the free amounts of GPUs."""
        return host.class_rows(GPU).free[0].astype(np.float64) if resource_class == GPU else None


class FullestGpu(NewWeights):
    """The same with kept raw weights."""

    name = "fullest_gpu"

    def weight_key(self, hosts, spec):
        """Return nothing: all requests weigh alike."""
        return ()


class Indifferent(FullestGpu):
    """The same without a preference among GPUs."""

    name = "indifferent"

    def provider_costs(self, host, spec, *, resource_class, amount):
        """Return None."""


class Off(FullestGpu):
    """The same, switched off."""

    name = "off"
    multiplier = 0.0


class Failing(FullestGpu):
    """A third-party weigher with a malformed preference."""

    name = "failing"
    costs = None

    def provider_costs(self, host, spec, *, resource_class, amount):
        """Return the result of the test."""
        return self.costs()


def gpu_host(name, *capacities):
    """Return a host with one child provider per GPU."""
    base = host(name)
    gpus = [
        ProviderSpec(
            uuid=uuid_named(f"{name}-gpu{number}"),
            name=f"{name}-gpu{number}",
            parent_uuid=base.providers[0].uuid,
            inventories={GPU: Inventory(total=capacity)},
        )
        for number, capacity in enumerate(capacities)
    ]
    return Fleet(providers=[*base.providers, *gpus], hosts=base.hosts)


def roost_with_weigher(weigher, *fleets, host_subset_size=1):
    opened = Roost(
        MemoryStore(),
        settings_of(enabled_filters=(), host_subset_size=host_subset_size),
        clock=FixedClock(),
        random=SeededRandom(0),
        rules=Rules(filters=(), weighers=(weigher,)),
    )
    for fleet in fleets:
        opened.install(fleet)
    return opened


def gpu_request(amount, *, count=1, gpus=1):
    groups = tuple(ResourceGroup(suffix=f"_G{number}", resources={GPU: amount}) for number in range(gpus))
    specs = {"group_policy": "isolate"} if gpus > 1 else {}
    return Request(flavor=Flavor(name="gpu", vcpus=0, memory_mb=1, extra_specs=specs), groups=groups, count=count)


def gpus_of(roost, decision):
    """Return the GPUs of a decision's picks: numbers, as in their names."""
    row_of_uuid, names = roost.state.providers.row_of_uuid, roost.state.providers.names
    uuids = [uuid for pick in decision.picks for uuid in sorted(pick.allocations, key=row_of_uuid.__getitem__)]
    return [names[row_of_uuid[uuid]] for uuid in uuids if "gpu" in names[row_of_uuid[uuid]]]


def test_the_weigher_chooses_the_gpu():
    roost = roost_with_weigher(FullestGpu(), gpu_host("a", 900, 400, 700), gpu_host("b", 1000, 1000, 1000))
    assert gpus_of(roost, roost.decide(gpu_request(300))) == ["a-gpu1"]
    assert gpus_of(roost, roost.decide(gpu_request(300))) == ["a-gpu2"]
    assert gpus_of(roost, roost.decide(gpu_request(300, gpus=2))) == ["a-gpu0", "a-gpu2"]


def test_every_instance_of_a_request_and_its_alternates_get_the_preferred_gpu():
    roost = roost_with_weigher(FullestGpu(), gpu_host("a", 900, 400), gpu_host("b", 1000, 300))
    decision = roost.decide(gpu_request(300, count=3))
    assert gpus_of(roost, decision) == ["a-gpu1", "a-gpu0", "a-gpu0"]
    (alternate,) = decision.alternates[""]
    assert uuid_named("b-gpu1") in alternate.allocations


def test_without_a_preference_the_first_gpu_is_taken():
    roost = roost_with_weigher(Indifferent(), gpu_host("a", 900, 400), gpu_host("b", 999, 999))
    assert gpus_of(roost, roost.decide(gpu_request(300))) == ["a-gpu0"]


def test_a_weigher_that_is_off_has_no_preference():
    roost = roost_with_weigher(Off(), gpu_host("a", 900, 400), gpu_host("b", 999, 999))
    assert gpus_of(roost, roost.decide(gpu_request(300))) == ["a-gpu0"]


def test_a_class_of_the_group_without_suffix_follows_the_preference_too():
    roost = roost_with_weigher(FullestGpu(), gpu_host("a", 900, 400), gpu_host("b", 999, 999))
    plain = Request(flavor=Flavor(name="gpu", vcpus=0, memory_mb=1, extra_specs={f"resources:{GPU}": "300"}))
    assert gpus_of(roost, roost.decide(plain)) == ["a-gpu1"]


def test_raw_weights_are_computed_for_changed_hosts_only():
    weigher = FullestGpu()
    roost = roost_with_weigher(weigher, *(gpu_host(f"h{number}", 1000, 1000) for number in range(20)))
    roost.decide(gpu_request(300))
    weigher.views.clear()
    for amount in (300, 200, 100):
        roost.decide(gpu_request(amount))
    assert set(weigher.views) <= {1}


@pytest.mark.parametrize("host_subset_size", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_kept_raw_weights_give_the_same_decisions_as_new_ones(seed, host_subset_size):
    random = np.random.default_rng(seed)
    capacities = [random.integers(1, 10, size=random.integers(1, 5)) * 100 for _ in range(12)]
    fleets = [gpu_host(f"h{number}", *map(int, each)) for number, each in enumerate(capacities)]
    kept, renewed = (
        roost_with_weigher(weigher, *fleets, host_subset_size=host_subset_size)
        for weigher in (FullestGpu(), NewWeights())
    )
    assert implements(FullestGpu(), HostsAlone)
    assert not implements(NewWeights(), HostsAlone)
    alive = []
    for _ in range(60):
        if alive and random.random() < 0.3:
            act = Departure(instance_uuids=(alive.pop(int(random.integers(len(alive)))),))
            kept.work([act])
            renewed.work([act])
            continue
        request = gpu_request(int(random.integers(1, 10)) * 50, count=int(random.integers(1, 3)))
        first, second = kept.decide(request), renewed.decide(request)
        assert msgspec.structs.replace(first, search_s=0.0, rank_s=0.0, uuid="") == msgspec.structs.replace(
            second, search_s=0.0, rank_s=0.0, uuid=""
        )
        alive += [pick.instance_uuid for pick in first.picks]


def test_class_rows_has_the_providers_of_each_host_in_row_order():
    roost = roost_with_weigher(FullestGpu(), gpu_host("a", 900), host("b"), gpu_host("c", 100, 200))
    view = HostView(roost.state)
    providers, free = view.class_rows(GPU)
    names = [[roost.state.providers.names[row] if row >= 0 else "" for row in rows] for rows in providers.tolist()]
    assert names == [["a-gpu0", ""], ["", ""], ["c-gpu0", "c-gpu1"]]
    assert free.clip(min=-1).tolist() == [[900, -1], [-1, -1], [100, 200]]
    part = HostView(roost.state, np.array([2, 0]))
    assert part.class_rows(GPU).free.clip(min=-1).tolist() == [[100, 200], [900, -1]]
    assert part.class_rows("CUSTOM_UNKNOWN").providers.tolist() == [[-1], [-1]]
    roost.install(gpu_host("d", 1, 2, 3))
    assert HostView(roost.state).class_rows(GPU).providers.shape == (4, 3)
    assert chosen_hosts(roost.decide(gpu_request(800))) == ["a"]


def test_a_third_party_weigher_may_have_a_preference():
    sandboxed, _ = sandbox_weigher(FullestGpu(), limit_s=0.0, refuses="host")
    assert implements(sandboxed, OrdersProviders)
    roost = roost_with_weigher(sandboxed, gpu_host("a", 900, 400), gpu_host("b", 999, 999))
    assert gpus_of(roost, roost.decide(gpu_request(100))) == ["a-gpu1"]


@pytest.mark.parametrize(
    "costs", [lambda: 1 / 0, lambda: np.zeros(9), lambda: np.array([np.nan, 0.0]), lambda: "no", lambda: [1, 0]]
)
def test_a_third_party_weigher_that_fails_has_no_preference(costs):
    weigher = Failing()
    weigher.costs = costs
    sandboxed, _ = sandbox_weigher(weigher, limit_s=0.0, refuses="host")
    roost = roost_with_weigher(sandboxed, gpu_host("a", 900, 400), gpu_host("b", 999, 999))
    assert gpus_of(roost, roost.decide(gpu_request(100))) == ["a-gpu0"]
