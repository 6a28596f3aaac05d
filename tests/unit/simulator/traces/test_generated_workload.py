import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.errors import BadRequest
from roost.model.fleet import Departure
from roost.model.names import is_resource_class, is_trait
from roost.model.request import Request
from roost.simulator.traces.generated_requests import MIXES
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options

recipes = st.builds(
    Recipe,
    hosts=st.integers(1, 60),
    requests=st.integers(1, 60),
    seed=st.integers(-(2**63), 2**63),
    mix=st.sampled_from(sorted(MIXES)),
)


def encode_workload(recipe):
    return msgspec.json.encode(generate(recipe, Options()), order="deterministic")


@settings(max_examples=25, deadline=None)
@given(recipes)
def test_the_same_seed_gives_the_same_bytes(recipe):
    assert encode_workload(recipe) == encode_workload(recipe)


@settings(max_examples=25, deadline=None)
@given(recipes)
def test_generated_workload_is_consistent(recipe):
    workload = generate(recipe, Options())
    fleet = workload.fleet
    known: set[str] = set()
    for provider in fleet.providers:
        assert provider.parent_uuid is None or provider.parent_uuid in known
        assert provider.uuid not in known
        known.add(provider.uuid)
        assert all(map(is_resource_class, provider.inventories))
        assert all(map(is_trait, provider.traits))
        assert provider.aggregates <= {aggregate.uuid for aggregate in fleet.aggregates}
    assert len(fleet.hosts) == recipe.hosts
    assert all(host.provider_uuid in known for host in fleet.hosts)
    groups = {group.uuid for group in fleet.groups}
    running: set[str] = set()
    requests = 0
    for event in workload.events:
        if isinstance(event.act, Departure):
            assert running.issuperset(event.act.instance_uuids)
            running.difference_update(event.act.instance_uuids)
            continue
        requests += 1
        assert running.isdisjoint(event.act.instance_uuids)
        assert event.act.group is None or event.act.group in groups
        running.update(event.act.instance_uuids)
    assert requests == recipe.requests
    times = [event.at_s for event in workload.events]
    assert times == sorted(times)


def test_seed_changes_the_requests_and_request_count_keeps_the_fleet():
    one = generate(Recipe(hosts=50, requests=50, mix="few"), Options())
    assert generate(Recipe(hosts=50, requests=50, mix="few", seed=2), Options()).events != one.events
    assert generate(Recipe(hosts=50, requests=90, mix="few"), Options()).fleet == one.fleet


def test_mixed_workload_covers_every_feature():
    workload = generate(Recipe(hosts=300, requests=2_000), Options())
    providers, requests = workload.fleet.providers, [e.act for e in workload.events if isinstance(e.act, Request)]
    assert any("numa" in provider.name for provider in providers)
    assert any("PGPU" in provider.inventories for provider in providers)
    ratios = {p.inventories["VCPU"].allocation_ratio for p in providers if "VCPU" in p.inventories}
    assert ratios == {1.0, 4.0}
    assert {aggregate.metadata["availability_zone"] for aggregate in workload.fleet.aggregates} == {
        "zone-1",
        "zone-2",
        "zone-3",
    }
    assert {group.policy for group in workload.fleet.groups} == {
        "affinity",
        "anti-affinity",
        "soft-affinity",
        "soft-anti-affinity",
    }
    assert any(request.count > 1 for request in requests)
    assert any(request.groups for request in requests)
    names = {request.flavor.name for request in requests}
    assert {"huge", "impossible", "enclave", "vector", "gpu-pair"} <= names


@pytest.mark.parametrize("wrong", [{"hosts": 0}, {"requests": -1}, {"hosts": 10**9}, {"mix": "odd"}])
def test_invalid_recipe_is_refused(wrong):
    with pytest.raises(BadRequest):
        Recipe(**wrong)


def test_hosts_option_is_refused_for_a_generated_workload():
    with pytest.raises(BadRequest, match="leave --hosts out"):
        generate(Recipe(), Options(hosts=("1x1c/1m",)))
