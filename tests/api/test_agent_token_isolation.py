"""Whatever the agent of one host asks the Placement API, nothing of another host is different afterwards."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.simulator.stable_uuids import uuid_of
from tests.api.agent_tokens import AGENT, NEW, OTHER_ROOT, OWN_ROOT, SHARED, TYPED, bound, child, hold, offered

PROVIDERS = (OWN_ROOT, uuid_of("a"), OTHER_ROOT, uuid_of("b"), SHARED, NEW)
CONSUMERS = ("here", "there", "both", "shared", "nobody")
CLASSES = ("VCPU", "VGPU", "DISK_GB")

providers = st.sampled_from(PROVIDERS)
amounts = st.dictionaries(
    providers, st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 2), min_size=1, max_size=2), max_size=3
)
wishes = st.dictionaries(st.sampled_from(CONSUMERS), amounts, min_size=1, max_size=2)
requests = st.one_of(
    st.tuples(st.just("allocations"), wishes),
    st.tuples(st.just("reshape"), providers, wishes),
    st.tuples(st.just("end"), st.sampled_from(CONSUMERS)),
    st.tuples(st.just("inventories"), providers, st.integers(1, 9)),
    st.tuples(st.just("traits"), providers),
    st.tuples(st.just("aggregates"), providers),
    st.tuples(st.just("create"), st.sampled_from(("host-0", "host-1", "new")), st.none() | providers),
    st.tuples(st.just("move"), providers, st.sampled_from(("host-0", "renamed")), st.none() | providers),
    st.tuples(st.just("delete"), providers),
)


def ask(apis, act, *told):
    """Send a request that would be carried out, more often than not, if the token were not bound."""
    match act:
        case "allocations":
            answer = apis.ask(
                AGENT, "POST", "/allocations", {uuid_of(key): wish(apis, key, told[0]) for key in told[0]}
            )
        case "reshape":
            offers = {told[0]: inventories(apis, told[0], 9)}
            allocations = {uuid_of(key): wish(apis, key, told[1]) for key in told[1]}
            answer = apis.ask(AGENT, "POST", "/reshaper", {"inventories": offers, "allocations": allocations})
        case "end":
            answer = apis.ask(AGENT, "DELETE", f"/allocations/{uuid_of(told[0])}")
        case "inventories":
            answer = apis.ask(AGENT, "PUT", f"/resource_providers/{told[0]}/inventories", inventories(apis, *told))
        case "traits":
            body = {"traits": ["HW_CPU_X86_AVX"], "resource_provider_generation": now(apis, told[0])}
            answer = apis.ask(AGENT, "PUT", f"/resource_providers/{told[0]}/traits", body)
        case "aggregates":
            body = {"aggregates": [uuid_of("rack")], "resource_provider_generation": now(apis, told[0])}
            answer = apis.ask(AGENT, "PUT", f"/resource_providers/{told[0]}/aggregates", body)
        case "create":
            answer = apis.ask(AGENT, "POST", "/resource_providers", child(told[0], NEW, told[1]))
        case "move":
            body = {"name": told[1], "parent_provider_uuid": told[2]}
            answer = apis.ask(AGENT, "PUT", f"/resource_providers/{told[0]}", body)
        case _:
            answer = apis.ask(AGENT, "DELETE", f"/resource_providers/{told[0]}")
    assert answer.status < 500, answer.json


def now(apis, uuid):
    found = apis.placement.get(f"/resource_providers/{uuid}")
    return found.json["generation"] if found.status == 200 else 0


def inventories(apis, uuid, total):
    return offered(generation=now(apis, uuid), VCPU=total, VGPU=total, DISK_GB=total)


def wish(apis, key, told):
    known = apis.admin("GET", f"/allocations/{uuid_of(key)}").get("consumer_generation")
    allocations = {uuid: {"resources": resources} for uuid, resources in told[key].items()}
    return {"allocations": allocations, "consumer_generation": known, **TYPED}


def seen(apis):
    """Give all that there is of the other host and of the shared disk: of that what is given back is not seen."""
    found = []
    for uuid in (OTHER_ROOT, uuid_of("b"), SHARED):
        provider = apis.admin("GET", f"/resource_providers/{uuid}")
        inventory = apis.admin("GET", f"/resource_providers/{uuid}/inventories")["inventories"]
        traits = apis.admin("GET", f"/resource_providers/{uuid}/traits")["traits"]
        aggregates = apis.admin("GET", f"/resource_providers/{uuid}/aggregates")["aggregates"]
        held = apis.admin("GET", f"/resource_providers/{uuid}/allocations")["allocations"]
        amounts = {key: each["resources"] for key, each in held.items()} if uuid != SHARED else {}
        found.append(
            (provider["name"], provider["parent_provider_uuid"], inventory, sorted(traits), aggregates, amounts)
        )
    tree = apis.admin("GET", f"/resource_providers?in_tree={OTHER_ROOT}")["resource_providers"]
    return found, sorted(each["uuid"] for each in tree)


def used_of_shared(apis):
    return sum(apis.admin("GET", f"/resource_providers/{SHARED}/usages")["usages"].values())


@settings(max_examples=25, deadline=None)
@given(st.lists(requests, min_size=4, max_size=12))
def test_nothing_of_another_host_changes(asked):
    with bound() as apis:
        hold(apis, "both", {OWN_ROOT: {"VCPU": 1}, OTHER_ROOT: {"VCPU": 1}})
        hold(apis, "shared", {uuid_of("a"): {"VGPU": 1}, SHARED: {"DISK_GB": 2}})
        before, used = seen(apis), used_of_shared(apis)
        for each in asked:
            ask(apis, *each)
            assert seen(apis) == before, each
            assert used_of_shared(apis) <= used
            used = used_of_shared(apis)
