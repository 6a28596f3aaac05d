import pytest

from roost.engine.columns.apply import apply, recount_hosts
from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.request import Request, ResourceGroup
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.model.writes import InventoryRow, PutInventories, PutSymbol, PutTraits
from roost.scheduler import registry
from roost.scheduler.shape.shape_cache import ShapeCache
from tests.support.fleets.fleets import fleet
from tests.support.fleets.worlds import settings_of


def state_with_hosts(*facts):
    """Return a state with one host of 8 VCPU for each of the facts."""
    state = fleet(*facts)
    apply(state, PutSymbol("resource_class", 1, "VCPU"))
    for number in range(1, len(facts) + 1):
        apply(state, PutInventories(number, 0, [InventoryRow(1, 8, 0, 1, 8, 1, 1.0)]))
    recount_hosts(state)
    return state


def shape_cache():
    return ShapeCache(registry.build(settings_of()), default_zone="nova", settings=SchedulerSettings())


def request(vcpus=1, *, extra_specs=None, **rest):
    return Request(flavor=Flavor(name="f", vcpus=vcpus, extra_specs=extra_specs or {}), **rest)


def names(shape, state):
    return [state.hosts.names[row] for row in shape.rank(10).rows]


def test_similar_requests_share_a_shape():
    state, cache = state_with_hosts(HostFacts()), shape_cache()
    one = cache.get(request(user_id="a"), state=state, now_s=0.0)
    assert cache.get(request(user_id="b", instance_uuids=("x",)), state=state, now_s=5.0) is one
    many = cache.get(request(count=3), state=state, now_s=0.0)
    assert cache.get(request(count=2), state=state, now_s=0.0) is many is not one
    assert cache.get(request(hints={"b": "1", "a": "2"}), state=state, now_s=0.0) is cache.get(
        request(hints={"a": "2", "b": "1"}), state=state, now_s=0.0
    )


@pytest.mark.parametrize(
    "other",
    [
        request(2),
        request(project_id="p"),
        request(hints={"same_host": "u"}),
        request(ignore_hosts=("host-1",)),
        request(extra_specs={"capabilities:vcpus_total": "1"}),
    ],
)
def test_requests_with_different_rule_inputs_have_different_shapes(other):
    state, cache = state_with_hosts(HostFacts()), shape_cache()
    assert cache.get(other, state=state, now_s=0.0) is not cache.get(request(), state=state, now_s=0.0)


def test_shape_is_rebuilt_when_traits_change():
    state, cache = state_with_hosts(HostFacts(), HostFacts()), shape_cache()
    trait_request = request(extra_specs={"trait:CUSTOM_FAST": "required"})
    before = cache.get(trait_request, state=state, now_s=0.0)
    assert names(before, state) == []
    apply(state, PutSymbol("trait", 70_000, "CUSTOM_FAST"))
    apply(state, PutTraits(2, 1, [70_000]))
    after = cache.get(trait_request, state=state, now_s=0.0)
    assert after is not before
    assert names(after, state) == ["host-2"]


def test_cached_shape_sees_a_larger_inventory():
    state, cache = state_with_hosts(HostFacts()), shape_cache()
    assert names(cache.get(request(9), state=state, now_s=0.0), state) == []
    apply(state, PutInventories(1, 1, [InventoryRow(1, 16, 0, 1, 16, 1, 1.0)]))
    recount_hosts(state)
    assert names(cache.get(request(9), state=state, now_s=0.0), state) == ["host-1"]


def test_a_shape_belongs_to_one_state():
    state, cache = state_with_hosts(HostFacts()), shape_cache()
    assert cache.get(request(), state=state.fork(), now_s=0.0) is not cache.get(request(), state=state, now_s=0.0)


def test_shape_is_rebuilt_when_a_host_misses_its_report_deadline():
    state, cache = state_with_hosts(HostFacts(reported_at_s=1000.0), HostFacts()), shape_cache()
    fresh = cache.get(request(), state=state, now_s=1000.0)
    assert names(fresh, state) == ["host-1", "host-2"]
    assert cache.get(request(), state=state, now_s=1060.0) is fresh
    assert names(cache.get(request(), state=state, now_s=1060.1), state) == ["host-2"]


def test_cache_evicts_the_least_recently_used_shape():
    state, cache = state_with_hosts(HostFacts()), shape_cache()
    first = cache.get(request(project_id="first"), state=state, now_s=0.0)
    second = cache.get(request(project_id="second"), state=state, now_s=0.0)
    for number in range(254):
        cache.get(request(project_id=str(number)), state=state, now_s=0.0)
    assert cache.get(request(project_id="first"), state=state, now_s=0.0) is first
    cache.get(request(project_id="one more"), state=state, now_s=0.0)
    assert cache.get(request(project_id="first"), state=state, now_s=0.0) is first
    assert cache.get(request(project_id="second"), state=state, now_s=0.0) is not second


def test_more_queries_than_cache_entries_rank_correctly():
    state, cache = state_with_hosts(HostFacts()), shape_cache()
    for vcpus in range(1, 300):
        assert bool(names(cache.get(request(vcpus), state=state, now_s=0.0), state)) == (vcpus <= 8)


@pytest.mark.parametrize(
    "wrong",
    [
        Request(flavor=Flavor(name="f", vcpus=True)),
        Request(flavor=Flavor(name="f", memory_mb=1.5)),
        Request(flavor=Flavor(name=7)),
        request(hints={"same_host": 3}),
        request(groups=(ResourceGroup(suffix="_A", resources={"VCPU": 1.5}),)),
        request(force_hosts=("a", None)),
    ],
    ids=repr,
)
def test_values_of_a_wrong_type_are_refused(wrong):
    with pytest.raises(BadRequest, match="the request cannot be stored: Expected"):
        shape_cache().get(wrong, state=state_with_hosts(HostFacts()), now_s=0.0)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, 10**6])
def test_invalid_instance_count_is_an_error(count):
    with pytest.raises(ValueError, match="count must be"):
        request(count=count)
