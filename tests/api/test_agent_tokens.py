"""Tokens that are bound to hosts: of all that can be written, only what is of these hosts is."""

import msgspec
import pytest

from roost.api.access.authentication import Tokens, new_token
from roost.api.access.policy import Policy
from roost.api.http import Identity
from roost.api.placement.application import Application
from roost.api.placement.routes import table
from roost.api.v1.policies import DEFAULTS
from roost.api.v1.routes import TABLE as OWN_TABLE
from roost.model.work.orders import OrderBody
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.simulator.stable_uuids import uuid_of
from tests.api.agent_tokens import (
    AGENT,
    FREE,
    NEW,
    OTHER,
    OTHER_ROOT,
    OWN_ROOT,
    SHARED,
    bound,
    child,
    generation,
    hold,
    holding,
    offered,
)
from tests.support.conductors.work_rows import operation, order

ORDER = msgspec.json.encode(OrderBody(operation=uuid_of("operation")))


@pytest.fixture
def apis():
    with bound() as found:
        yield found


def held(apis, consumer):
    return {
        uuid: each["resources"]
        for uuid, each in apis.admin("GET", f"/allocations/{uuid_of(consumer)}")["allocations"].items()
    }


def moved(apis, consumer, to):
    """Give a reshape that moves what a consumer holds from a root to its child."""
    inventories = {to: offered(generation=generation(apis, to), VCPU=8, VGPU=4)}
    return {"inventories": inventories, "allocations": {uuid_of(consumer): holding(apis, consumer, {to: {"VCPU": 1}})}}


def named(method, path, apis, *, root, consumer, child_uuid, new_name):
    """Give a request to a path of the Placement API that would be carried out, about one host."""
    uuid = child_uuid if path.endswith(("{uuid}", "inventories", "{resource_class}", "traits")) else root
    at = path.format(uuid=uuid, name="CUSTOM_NEW", resource_class="VGPU", consumer=uuid_of(consumer))
    now = generation(apis, uuid)
    body = {
        ("POST", "/resource_providers"): child(new_name, uuid_of(new_name), root),
        ("PUT", "/resource_providers/{uuid}"): {"name": f"{new_name}-again", "parent_provider_uuid": root},
        ("POST", "/resource_providers/{uuid}/inventories"): {
            "resource_class": "PGPU",
            "total": 1,
            "resource_provider_generation": now,
        },
        ("PUT", "/resource_providers/{uuid}/inventories"): offered(generation=now, VGPU=5),
        ("PUT", "/resource_providers/{uuid}/inventories/{resource_class}"): {
            "total": 6,
            "resource_provider_generation": now,
        },
        ("PUT", "/resource_providers/{uuid}/aggregates"): {
            "aggregates": [uuid_of("aggregate")],
            "resource_provider_generation": now,
        },
        ("PUT", "/resource_providers/{uuid}/traits"): {
            "traits": ["HW_CPU_X86_AVX"],
            "resource_provider_generation": now,
        },
        ("POST", "/resource_classes"): {"name": "CUSTOM_POSTED"},
        ("POST", "/allocations"): {uuid_of(consumer): holding(apis, consumer, {root: {"VCPU": 2}})},
        ("PUT", "/allocations/{consumer}"): holding(apis, consumer, {root: {"VCPU": 3}}),
        ("POST", "/reshaper"): moved(apis, consumer, child_uuid),
    }.get((method, path))
    if path.startswith(("/traits", "/resource_classes")) and method == "DELETE":
        at = at.replace("NEW", "OLD")
    return method, at, body


OWN = {"root": OWN_ROOT, "consumer": "here", "child_uuid": uuid_of("a"), "new_name": "new-0"}
ELSEWHERE = {"root": OTHER_ROOT, "consumer": "there", "child_uuid": uuid_of("b"), "new_name": "new-1"}
WRITES = [(method, path) for path, methods in table().items() for method in methods if method != "GET"]
# What is about no host: names are added by whoever may, and taken away by no agent.
ADDED = {("POST", "/resource_classes"), ("PUT", "/resource_classes/{name}"), ("PUT", "/traits/{name}")}
TAKEN = {("DELETE", "/resource_classes/{name}"), ("DELETE", "/traits/{name}")}


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_each_write_of_the_placement_api_is_for_the_host_of_the_token_and_no_other(apis, method, path):
    own, elsewhere = (named(method, path, apis, **where) for where in (OWN, ELSEWHERE))
    assert apis.ask(FREE, *own).status == 403
    taken = apis.ask(AGENT, *own)
    if (method, path) in ADDED:
        assert taken.status in {201, 204}
        return
    refused = apis.ask(AGENT, *elsewhere)
    assert refused.status == 403
    assert "this token may only touch host host-0, and " in refused.text
    assert apis.ask(OTHER, *elsewhere).status == taken.status
    assert (taken.status == 403) == ((method, path) in TAKEN), taken.json
    assert taken.status in {200, 201, 204, 403}


def test_a_write_elsewhere_says_whose_it_is(apis):
    root = OTHER_ROOT
    answer = apis.ask(AGENT, "PUT", f"/resource_providers/{uuid_of('b')}/traits", {"traits": []})
    assert answer.text == f"this token may only touch host host-0, and provider {uuid_of('b')} is of host-1"
    answer = apis.ask(AGENT, "POST", "/resource_providers", child("x", NEW, root))
    assert answer.text == f"this token may only touch host host-0, and provider {root} is of host-1"


def test_everything_may_be_read(apis):
    for path in table():
        if path != "/" and "GET" in table()[path]:
            at = path.format(uuid=OTHER_ROOT, name="HW_CPU_X86_AVX", resource_class="VCPU", consumer=uuid_of("there"))
            at = at.replace("/resource_classes/HW_CPU_X86_AVX", "/resource_classes/VCPU")
            query = {"/usages": "?project_id=p", "/allocation_candidates": "?resources=VCPU:1"}.get(path, "")
            assert apis.ask(AGENT, "GET", at + query).status in {200, 204}, path


def test_a_new_root_has_the_name_of_a_host_of_the_token(apis):
    apis.admin("DELETE", f"/resource_providers/{SHARED}/inventories")
    answer = apis.ask(AGENT, "POST", "/resource_providers", {"name": "squatted", "uuid": NEW})
    assert (answer.status, answer.text) == (
        403,
        "this token may only touch host host-0, and a provider without a parent would be of squatted",
    )
    made, kept = new_token("new", hosts=("fresh", "fresh.example.org"))
    apis.placement.application = Application(identify=Tokens([kept]).identify, allows=Policy(is_legacy=True).allows)
    mine = {"headers": {"x-auth-token": made}}
    assert apis.placement.post("/resource_providers", {"name": "fresh.example.org", "uuid": NEW}, **mine).status == 200
    answer = apis.placement.put(f"/resource_providers/{NEW}/inventories", offered(VCPU=1), **mine)
    assert answer.status == 200
    body = {"name": "elsewhere", "parent_provider_uuid": None}
    assert apis.placement.put(f"/resource_providers/{NEW}", body, **mine).status == 403
    answer = apis.placement.put(f"/resource_providers/{SHARED}/inventories", offered(generation=9), **mine)
    text = f"this token may only touch hosts fresh, fresh.example.org, and provider {SHARED} is of shared"
    assert (answer.status, answer.text) == (403, text)


@pytest.mark.parametrize(
    ("name", "parent", "status"),
    [("renamed", OTHER_ROOT, 403), ("renamed", None, 403), ("renamed", OWN_ROOT, 200)],
)
def test_a_provider_stays_in_the_tree_of_its_host(apis, name, parent, status):
    body = {"name": name, "parent_provider_uuid": parent}
    assert apis.ask(AGENT, "PUT", f"/resource_providers/{uuid_of('a')}", body).status == status


@pytest.mark.parametrize("way", ["one", "many", "reshape"])
@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ({OWN_ROOT: 1, OTHER_ROOT: 1}, {OWN_ROOT: 2, OTHER_ROOT: 1}, 204),
        ({OWN_ROOT: 1, OTHER_ROOT: 1}, {OTHER_ROOT: 1}, 204),
        ({OWN_ROOT: 1, OTHER_ROOT: 1}, {OWN_ROOT: 1}, 403),
        ({OWN_ROOT: 1, OTHER_ROOT: 2}, {OWN_ROOT: 1, OTHER_ROOT: 1}, 403),
        ({OWN_ROOT: 1, OTHER_ROOT: 1}, {}, 403),
        ({OWN_ROOT: 1, SHARED: 10}, {}, 204),
        ({OWN_ROOT: 1, SHARED: 10}, {SHARED: 5}, 204),
        ({OWN_ROOT: 1, SHARED: 10}, {OWN_ROOT: 1, SHARED: 11}, 403),
        ({OWN_ROOT: 1}, {OWN_ROOT: 1, OTHER_ROOT: 1}, 403),
        ({OTHER_ROOT: 1}, {OTHER_ROOT: 1, OWN_ROOT: 1}, 403),
        ({}, {OWN_ROOT: 1}, 403),
    ],
)
def test_of_other_hosts_a_consumer_keeps_what_it_has(apis, before, after, status, way):
    def amounts(of):
        return {uuid: {"DISK_GB" if uuid == SHARED else "VCPU": amount} for uuid, amount in of.items()}

    if before:
        hold(apis, "mover", amounts(before))
    body = holding(apis, "mover", amounts(after))
    asked = {
        "one": ("PUT", f"/allocations/{uuid_of('mover')}", body),
        "many": ("POST", "/allocations", {uuid_of("mover"): body}),
        "reshape": ("POST", "/reshaper", {"inventories": offers(apis), "allocations": {uuid_of("mover"): body}}),
    }
    answer = apis.ask(AGENT, *asked[way])
    assert answer.status == status, answer.json
    assert held(apis, "mover") == amounts(before if status == 403 else after)


def offers(apis):
    return {OWN_ROOT: offered(generation=generation(apis, OWN_ROOT), VCPU=8, MEMORY_MB=8192)}


def test_a_class_keeps_its_name(apis):
    answer = apis.ask(AGENT, "PUT", "/resource_classes/CUSTOM_OLD", {"name": "CUSTOM_X"}, version="1.6")
    assert answer.status == 403


def test_a_body_that_cannot_be_meant_is_told_first_and_what_is_not_there_is_not_there(apis):
    assert apis.ask(AGENT, "PUT", f"/allocations/{uuid_of('there')}", {}).status == 400
    assert apis.ask(AGENT, "POST", "/resource_providers", {"name": 1}).status == 400
    assert apis.ask(AGENT, "DELETE", f"/resource_providers/{NEW}").status == 404
    assert apis.ask(AGENT, "DELETE", f"/allocations/{NEW}").status == 404
    assert apis.ask(AGENT, "POST", "/resource_providers", child("x", uuid_of("y"), NEW)).status == 400


def test_a_policy_file_may_take_more_away(apis):
    policy = Policy({"placement:resource_providers:traits:update": "role:admin"})
    apis.placement.application = Application(identify=apis.placement.application._identify, allows=policy.allows)
    url, body = f"/resource_providers/{OWN_ROOT}/traits", {"traits": [], "resource_provider_generation": 9}
    answer = apis.ask(AGENT, "PUT", url, body)
    assert (answer.status, "Policy does not allow" in answer.text) == (403, True)


OWN_WRITES = [
    (method, path)
    for path, methods in OWN_TABLE.items()
    for method, route in methods.items()
    if DEFAULTS[route.policy] in {"rule:admin_api", "rule:admin_or_service_api", "rule:agent_api"}
]
RUN = uuid_of("run")
REGISTRATION = {"run": RUN, "driver": "fake", "nodes": []}
# Of what agents may write: how it is asked about a host, and about the instance of a decision there.
OWN_BODIES = {
    ("PUT", "/agents/{host}"): REGISTRATION,
    ("PUT", "/agents/{host}/nodes/{node}"): {"host_ip": "10.0.0.1"},
    ("POST", "/orders/{id}/answer"): {"run": RUN, "outcome": "ok"},
}


def prepared(apis):
    """Let an agent live on each host, with an order to it, and an instance; give the names of all that by host."""
    found = {}
    for number, (who, host) in enumerate(((AGENT, "host-0"), (OTHER, "host-1")), start=1):
        assert apis.ask_own(who, "PUT", f"/agents/{host}", REGISTRATION).status == 200
        flavor = {"name": "small", "vcpus": 1, "memory_mb": 1}
        made = apis.own.post("/decisions", {"flavor": flavor, "force_hosts": [host]}).json
        orders = (operation(number), order(number, operation_id=number, host=host, action="destroy", body=ORDER))
        apis.own.serving.run(
            lambda current, orders=orders: current.commit([Item(writes=(), work=tuple(map(Put, orders)))])
        )
        instance = made["picks"][0]["instance_uuid"]
        found[host] = {"decision": made["uuid"], "order": str(number), "instance": instance}
    return found


@pytest.mark.parametrize(("method", "path"), OWN_WRITES)
def test_each_write_of_roosts_own_api_is_for_the_host_of_the_token_and_no_other(apis, method, path):
    places = prepared(apis)

    def asked(host):
        names = places[host]
        number = {
            "/decisions/{id}/next": names["decision"],
            "/orders/{id}/answer": names["order"],
        }.get(path, names["instance"])
        body = OWN_BODIES.get((method, path), {} if path == "/decisions/{id}/next" else None)
        if path == "/orders/poll":
            body = {"agents": [{"host": host, "run": RUN, "fence": 1}], "wait_s": 0}
        return method, path.format(id=number, host=host, node=host, uuid=OTHER_ROOT, name="x"), body

    policy = OWN_TABLE[path][method].policy
    is_for_agents = DEFAULTS[policy] == "rule:agent_api"
    refused = apis.ask_own(AGENT, *asked("host-1"))
    assert refused.status == 403
    bound_to = "this token may only touch host host-0, not host-1"
    assert refused.json["detail"] == (
        bound_to if is_for_agents else f"policy {policy} does not allow this; your roles: agent"
    )
    for who, host in ((AGENT, "host-0"), (OTHER, "host-1"), (FREE, "host-0")):
        status = apis.ask_own(who, *asked(host)).status
        assert (status == 403) != is_for_agents, (who, status)


def test_of_many_hosts_a_sentence_names_some():
    who = Identity(user_id="fleet", hosts=frozenset(f"h{number}" for number in range(1000)))
    assert who.bounds == "hosts h0, h1, h10, h100, h101 and 995 more"
    assert (who.may_touch("H7"), who.may_touch("x")) == (True, False)
