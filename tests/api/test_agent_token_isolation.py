"""No request with the token of one host's agent changes another host in the Placement API."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.simulator.stable_uuids import uuid_of
from tests.api.agent_tokens import (
    AGENT,
    NEW,
    OTHER_ROOT,
    OWN_ROOT,
    SHARED,
    TYPED,
    allocate,
    child,
    inventories_body,
    open_apis,
)

PROVIDERS = (OWN_ROOT, uuid_of("a"), OTHER_ROOT, uuid_of("b"), SHARED, NEW)
CONSUMERS = ("here", "there", "both", "shared", "nobody")
CLASSES = ("VCPU", "VGPU", "DISK_GB")

providers = st.sampled_from(PROVIDERS)
amounts = st.dictionaries(
    providers, st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 2), min_size=1, max_size=2), max_size=3
)
allocation_requests = st.dictionaries(st.sampled_from(CONSUMERS), amounts, min_size=1, max_size=2)
requests = st.one_of(
    st.tuples(st.just("allocations"), allocation_requests),
    st.tuples(st.just("reshape"), providers, allocation_requests),
    st.tuples(st.just("end"), st.sampled_from(CONSUMERS)),
    st.tuples(st.just("inventories"), providers, st.integers(1, 9)),
    st.tuples(st.just("traits"), providers),
    st.tuples(st.just("aggregates"), providers),
    st.tuples(st.just("create"), st.sampled_from(("host-0", "host-1", "new")), st.none() | providers),
    st.tuples(st.just("move"), providers, st.sampled_from(("host-0", "renamed")), st.none() | providers),
    st.tuples(st.just("delete"), providers),
)


def send(apis, act, *arguments):
    """Send a request that an unrestricted token could usually make."""
    match act:
        case "allocations":
            response = apis.ask(
                AGENT,
                "POST",
                "/allocations",
                {uuid_of(key): allocation_request(apis, key, arguments[0]) for key in arguments[0]},
            )
        case "reshape":
            offers = {arguments[0]: inventories(apis, arguments[0], 9)}
            allocations = {uuid_of(key): allocation_request(apis, key, arguments[1]) for key in arguments[1]}
            response = apis.ask(AGENT, "POST", "/reshaper", {"inventories": offers, "allocations": allocations})
        case "end":
            response = apis.ask(AGENT, "DELETE", f"/allocations/{uuid_of(arguments[0])}")
        case "inventories":
            response = apis.ask(
                AGENT, "PUT", f"/resource_providers/{arguments[0]}/inventories", inventories(apis, *arguments)
            )
        case "traits":
            body = {"traits": ["HW_CPU_X86_AVX"], "resource_provider_generation": generation_of(apis, arguments[0])}
            response = apis.ask(AGENT, "PUT", f"/resource_providers/{arguments[0]}/traits", body)
        case "aggregates":
            body = {"aggregates": [uuid_of("rack")], "resource_provider_generation": generation_of(apis, arguments[0])}
            response = apis.ask(AGENT, "PUT", f"/resource_providers/{arguments[0]}/aggregates", body)
        case "create":
            response = apis.ask(AGENT, "POST", "/resource_providers", child(arguments[0], NEW, arguments[1]))
        case "move":
            body = {"name": arguments[1], "parent_provider_uuid": arguments[2]}
            response = apis.ask(AGENT, "PUT", f"/resource_providers/{arguments[0]}", body)
        case _:
            response = apis.ask(AGENT, "DELETE", f"/resource_providers/{arguments[0]}")
    assert response.status < 500, response.json


def generation_of(apis, uuid):
    response = apis.placement.get(f"/resource_providers/{uuid}")
    return response.json["generation"] if response.status == 200 else 0


def inventories(apis, uuid, total):
    return inventories_body(generation=generation_of(apis, uuid), VCPU=total, VGPU=total, DISK_GB=total)


def allocation_request(apis, key, amounts_by_consumer):
    generation = apis.admin("GET", f"/allocations/{uuid_of(key)}").get("consumer_generation")
    allocations = {uuid: {"resources": resources} for uuid, resources in amounts_by_consumer[key].items()}
    return {"allocations": allocations, "consumer_generation": generation, **TYPED}


def snapshot_other_host(apis):
    """Return the state of the other host and the shared disk; released amounts of the shared disk are left out."""
    state = []
    for uuid in (OTHER_ROOT, uuid_of("b"), SHARED):
        provider = apis.admin("GET", f"/resource_providers/{uuid}")
        inventory = apis.admin("GET", f"/resource_providers/{uuid}/inventories")["inventories"]
        traits = apis.admin("GET", f"/resource_providers/{uuid}/traits")["traits"]
        aggregates = apis.admin("GET", f"/resource_providers/{uuid}/aggregates")["aggregates"]
        held = apis.admin("GET", f"/resource_providers/{uuid}/allocations")["allocations"]
        amounts = {key: each["resources"] for key, each in held.items()} if uuid != SHARED else {}
        state.append(
            (provider["name"], provider["parent_provider_uuid"], inventory, sorted(traits), aggregates, amounts)
        )
    tree = apis.admin("GET", f"/resource_providers?in_tree={OTHER_ROOT}")["resource_providers"]
    return state, sorted(each["uuid"] for each in tree)


def shared_usage(apis):
    return sum(apis.admin("GET", f"/resource_providers/{SHARED}/usages")["usages"].values())


@settings(max_examples=25, deadline=None)
@given(st.lists(requests, min_size=4, max_size=12))
def test_agent_token_cannot_change_another_host(sequence):
    with open_apis() as apis:
        allocate(apis, "both", {OWN_ROOT: {"VCPU": 1}, OTHER_ROOT: {"VCPU": 1}})
        allocate(apis, "shared", {uuid_of("a"): {"VGPU": 1}, SHARED: {"DISK_GB": 2}})
        before, used = snapshot_other_host(apis), shared_usage(apis)
        for each in sequence:
            send(apis, *each)
            assert snapshot_other_host(apis) == before, each
            assert shared_usage(apis) <= used
            used = shared_usage(apis)
