"""Agent tokens may write only what belongs to their hosts."""

import msgspec
import pytest

from roost.api.access.authentication import Tokens, new_token
from roost.api.access.policy import Policy
from roost.api.http import Identity
from roost.api.placement.application import Application
from roost.api.placement.routes import table
from roost.api.v1.policies import DEFAULTS
from roost.api.v1.routes import TABLE as V1_TABLE
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
    allocate,
    allocation_body,
    child,
    generation,
    inventories_body,
    open_apis,
)
from tests.support.conductors.work_rows import operation, order

ORDER = msgspec.json.encode(OrderBody(operation=uuid_of("operation")))


@pytest.fixture
def apis():
    with open_apis() as apis:
        yield apis


def allocations_of(apis, consumer):
    return {
        uuid: each["resources"]
        for uuid, each in apis.admin("GET", f"/allocations/{uuid_of(consumer)}")["allocations"].items()
    }


def reshape_to_child(apis, consumer, to):
    """Return a reshape that moves a consumer's allocations from a root to its child."""
    inventories = {to: inventories_body(generation=generation(apis, to), VCPU=8, VGPU=4)}
    return {
        "inventories": inventories,
        "allocations": {uuid_of(consumer): allocation_body(apis, consumer, {to: {"VCPU": 1}})},
    }


def write_request(method, path, apis, *, root, consumer, child_uuid, new_name):
    """Return a valid write request for one host and a path of the Placement API."""
    uuid = child_uuid if path.endswith(("{uuid}", "inventories", "{resource_class}", "traits")) else root
    url = path.format(uuid=uuid, name="CUSTOM_NEW", resource_class="VGPU", consumer=uuid_of(consumer))
    provider_generation = generation(apis, uuid)
    body = {
        ("POST", "/resource_providers"): child(new_name, uuid_of(new_name), root),
        ("PUT", "/resource_providers/{uuid}"): {"name": f"{new_name}-again", "parent_provider_uuid": root},
        ("POST", "/resource_providers/{uuid}/inventories"): {
            "resource_class": "PGPU",
            "total": 1,
            "resource_provider_generation": provider_generation,
        },
        ("PUT", "/resource_providers/{uuid}/inventories"): inventories_body(generation=provider_generation, VGPU=5),
        ("PUT", "/resource_providers/{uuid}/inventories/{resource_class}"): {
            "total": 6,
            "resource_provider_generation": provider_generation,
        },
        ("PUT", "/resource_providers/{uuid}/aggregates"): {
            "aggregates": [uuid_of("aggregate")],
            "resource_provider_generation": provider_generation,
        },
        ("PUT", "/resource_providers/{uuid}/traits"): {
            "traits": ["HW_CPU_X86_AVX"],
            "resource_provider_generation": provider_generation,
        },
        ("POST", "/resource_classes"): {"name": "CUSTOM_POSTED"},
        ("POST", "/allocations"): {uuid_of(consumer): allocation_body(apis, consumer, {root: {"VCPU": 2}})},
        ("PUT", "/allocations/{consumer}"): allocation_body(apis, consumer, {root: {"VCPU": 3}}),
        ("POST", "/reshaper"): reshape_to_child(apis, consumer, child_uuid),
    }.get((method, path))
    if path.startswith(("/traits", "/resource_classes")) and method == "DELETE":
        url = url.replace("NEW", "OLD")
    return method, url, body


OWN_HOST = {"root": OWN_ROOT, "consumer": "here", "child_uuid": uuid_of("a"), "new_name": "new-0"}
OTHER_HOST = {"root": OTHER_ROOT, "consumer": "there", "child_uuid": uuid_of("b"), "new_name": "new-1"}
WRITES = [(method, path) for path, methods in table().items() for method in methods if method != "GET"]
# Custom names belong to no host: an agent may create names, and delete none.
CREATES = {("POST", "/resource_classes"), ("PUT", "/resource_classes/{name}"), ("PUT", "/traits/{name}")}
DELETES = {("DELETE", "/resource_classes/{name}"), ("DELETE", "/traits/{name}")}


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_placement_writes_are_limited_to_the_host_of_the_token(apis, method, path):
    allowed, forbidden = (write_request(method, path, apis, **place) for place in (OWN_HOST, OTHER_HOST))
    assert apis.ask(FREE, *allowed).status == 403
    response = apis.ask(AGENT, *allowed)
    if (method, path) in CREATES:
        assert response.status in {201, 204}
        return
    refused = apis.ask(AGENT, *forbidden)
    assert refused.status == 403
    assert "this token may only touch host host-0, and " in refused.text
    assert apis.ask(OTHER, *forbidden).status == response.status
    assert (response.status == 403) == ((method, path) in DELETES), response.json
    assert response.status in {200, 201, 204, 403}


def test_refused_write_names_the_host_of_the_provider(apis):
    root = OTHER_ROOT
    response = apis.ask(AGENT, "PUT", f"/resource_providers/{uuid_of('b')}/traits", {"traits": []})
    assert response.text == f"this token may only touch host host-0, and provider {uuid_of('b')} belongs to host-1"
    response = apis.ask(AGENT, "POST", "/resource_providers", child("x", NEW, root))
    assert response.text == f"this token may only touch host host-0, and provider {root} belongs to host-1"


def test_agent_token_can_read_every_path(apis):
    for path in table():
        if path != "/" and "GET" in table()[path]:
            url = path.format(uuid=OTHER_ROOT, name="HW_CPU_X86_AVX", resource_class="VCPU", consumer=uuid_of("there"))
            url = url.replace("/resource_classes/HW_CPU_X86_AVX", "/resource_classes/VCPU")
            query = {"/usages": "?project_id=p", "/allocation_candidates": "?resources=VCPU:1"}.get(path, "")
            assert apis.ask(AGENT, "GET", url + query).status in {200, 204}, path


def test_new_root_provider_must_be_named_after_a_host_of_the_token(apis):
    apis.admin("DELETE", f"/resource_providers/{SHARED}/inventories")
    response = apis.ask(AGENT, "POST", "/resource_providers", {"name": "squatted", "uuid": NEW})
    assert (response.status, response.text) == (
        403,
        "this token may only touch host host-0, and a provider without a parent would belong to squatted",
    )
    secret, stored = new_token("new", hosts=("fresh", "fresh.example.org"))
    apis.placement.application = Application(identify=Tokens([stored]).identify, allows=Policy(is_legacy=True).allows)
    mine = {"headers": {"x-auth-token": secret}}
    assert apis.placement.post("/resource_providers", {"name": "fresh.example.org", "uuid": NEW}, **mine).status == 200
    response = apis.placement.put(f"/resource_providers/{NEW}/inventories", inventories_body(VCPU=1), **mine)
    assert response.status == 200
    body = {"name": "elsewhere", "parent_provider_uuid": None}
    assert apis.placement.put(f"/resource_providers/{NEW}", body, **mine).status == 403
    response = apis.placement.put(f"/resource_providers/{SHARED}/inventories", inventories_body(generation=9), **mine)
    text = f"this token may only touch hosts fresh, fresh.example.org, and provider {SHARED} belongs to shared"
    assert (response.status, response.text) == (403, text)


@pytest.mark.parametrize(
    ("name", "parent", "status"),
    [("renamed", OTHER_ROOT, 403), ("renamed", None, 403), ("renamed", OWN_ROOT, 200)],
)
def test_agent_cannot_move_a_provider_out_of_its_tree(apis, name, parent, status):
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
def test_agent_cannot_change_allocations_on_other_hosts(apis, before, after, status, way):
    def amounts(of):
        return {uuid: {"DISK_GB" if uuid == SHARED else "VCPU": amount} for uuid, amount in of.items()}

    if before:
        allocate(apis, "mover", amounts(before))
    body = allocation_body(apis, "mover", amounts(after))
    requests = {
        "one": ("PUT", f"/allocations/{uuid_of('mover')}", body),
        "many": ("POST", "/allocations", {uuid_of("mover"): body}),
        "reshape": (
            "POST",
            "/reshaper",
            {"inventories": root_inventories(apis), "allocations": {uuid_of("mover"): body}},
        ),
    }
    response = apis.ask(AGENT, *requests[way])
    assert response.status == status, response.json
    assert allocations_of(apis, "mover") == amounts(before if status == 403 else after)


def root_inventories(apis):
    return {OWN_ROOT: inventories_body(generation=generation(apis, OWN_ROOT), VCPU=8, MEMORY_MB=8192)}


def test_agent_cannot_rename_a_resource_class(apis):
    response = apis.ask(AGENT, "PUT", "/resource_classes/CUSTOM_OLD", {"name": "CUSTOM_X"}, version="1.6")
    assert response.status == 403


def test_invalid_bodies_and_missing_objects_are_reported_before_403(apis):
    assert apis.ask(AGENT, "PUT", f"/allocations/{uuid_of('there')}", {}).status == 400
    assert apis.ask(AGENT, "POST", "/resource_providers", {"name": 1}).status == 400
    assert apis.ask(AGENT, "DELETE", f"/resource_providers/{NEW}").status == 404
    assert apis.ask(AGENT, "DELETE", f"/allocations/{NEW}").status == 404
    assert apis.ask(AGENT, "POST", "/resource_providers", child("x", uuid_of("y"), NEW)).status == 400


def test_policy_file_can_restrict_agent_tokens_further(apis):
    policy = Policy({"placement:resource_providers:traits:update": "role:admin"})
    apis.placement.application = Application(identify=apis.placement.application._identify, allows=policy.allows)
    url, body = f"/resource_providers/{OWN_ROOT}/traits", {"traits": [], "resource_provider_generation": 9}
    response = apis.ask(AGENT, "PUT", url, body)
    assert (response.status, "Policy does not allow" in response.text) == (403, True)


V1_WRITES = [
    (method, path)
    for path, methods in V1_TABLE.items()
    for method, route in methods.items()
    if DEFAULTS.get(route.policy) in {"rule:admin_api", "rule:admin_or_service_api", "rule:agent_api"}
]
RUN = uuid_of("run")
REGISTRATION = {"run": RUN, "driver": "fake", "nodes": []}
# Bodies of the requests that agents may send, about a host.
V1_BODIES = {
    ("PUT", "/agents/{host}"): REGISTRATION,
    ("PUT", "/agents/{host}/nodes/{node}"): {"host_ip": "10.0.0.1"},
    ("POST", "/orders/{id}/answer"): {"run": RUN, "outcome": "ok"},
}


def prepare_hosts(apis):
    """Register an agent, an order and an instance on each host; return their IDs by host."""
    ids = {}
    for number, (token, host) in enumerate(((AGENT, "host-0"), (OTHER, "host-1")), start=1):
        assert apis.ask_v1(token, "PUT", f"/agents/{host}", REGISTRATION).status == 200
        flavor = {"name": "small", "vcpus": 1, "memory_mb": 1}
        decision = apis.own.post("/decisions", {"flavor": flavor, "force_hosts": [host]}).json
        rows = (operation(number), order(number, operation_id=number, host=host, action="destroy", body=ORDER))
        apis.own.serving.run(lambda current, rows=rows: current.commit([Item(writes=(), work=tuple(map(Put, rows)))]))
        instance = decision["picks"][0]["instance_uuid"]
        ids[host] = {"decision": decision["uuid"], "order": str(number), "instance": instance}
    return ids


@pytest.mark.parametrize(("method", "path"), V1_WRITES)
def test_v1_writes_are_limited_to_the_host_of_the_token(apis, method, path):
    ids = prepare_hosts(apis)

    def request_to(host):
        host_ids = ids[host]
        number = {
            "/decisions/{id}/next": host_ids["decision"],
            "/orders/{id}/answer": host_ids["order"],
        }.get(path, host_ids["instance"])
        body = V1_BODIES.get((method, path), {} if path == "/decisions/{id}/next" else None)
        if path == "/orders/poll":
            body = {"agents": [{"host": host, "run": RUN, "fence": 1}], "wait_s": 0}
        return method, path.format(id=number, host=host, node=host, uuid=OTHER_ROOT, name="x"), body

    policy = V1_TABLE[path][method].policy
    is_for_agents = DEFAULTS[policy] == "rule:agent_api"
    refused = apis.ask_v1(AGENT, *request_to("host-1"))
    assert refused.status == 403
    needed = refused.json.get("needed_roles", [])
    assert is_for_agents or needed[-1] == "admin"
    bound_to = "this token may only touch host host-0, not host-1"
    assert refused.json["detail"] == (
        bound_to
        if is_for_agents
        else f"policy {policy} does not allow this; your roles: agent; it needs the role {' or '.join(needed)}"
    )
    for token, host in ((AGENT, "host-0"), (OTHER, "host-1"), (FREE, "host-0")):
        status = apis.ask_v1(token, *request_to(host)).status
        assert (status == 403) != is_for_agents, (token, status)


def test_error_for_a_token_of_many_hosts_names_only_a_few():
    identity = Identity(user_id="fleet", hosts=frozenset(f"h{number}" for number in range(1000)))
    assert identity.bounds == "hosts h0, h1, h10, h100, h101 and 995 more"
    assert (identity.may_touch("H7"), identity.may_touch("x")) == (True, False)
