"""Who changed what: the list of changes, operations, stories and decisions with their clients."""

import pytest

from roost.api.access.authentication import as_toml, new_token
from roost.api.v1.routes import TABLE
from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import READS_BY_POST
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

SMALL = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 16}}
ALICE = {"x-auth-token": "alice:ops", "x-roles": "admin"}
BOB = {"x-auth-token": "bob:shop", "x-roles": "admin"}
READER = {"x-auth-token": "rita:shop", "x-roles": "reader"}
CONSUMER = "11111111-1111-4111-8111-111111111111"


def changes(own, query="", **options):
    """Return the listed changes."""
    response = own.get(f"/changes{query}", **options)
    assert response.status == 200, response.json
    return response.json["changes"]


def acts(found):
    """Return user, kind and object of changes."""
    return [(each["user_id"], each["kind"], each["object"]) for each in found]


def test_disabled_host_leads_to_the_client_who_did_it(own):
    body = {"disabled": True, "disabled_reason": "bad disk"}
    assert own.ask("PATCH", "/services/host-0", body, headers=ALICE).status == 200
    assert own.ask("PATCH", "/services/host-0", body, headers=BOB).status == 200
    assert own.ask("PATCH", "/services/nowhere", body, headers=BOB).status == 404
    enabled = own.ask("PATCH", "/services/host-0", {"disabled": False}, headers=BOB)
    disable = {"user_id": "alice", "project_id": "ops", "roles": ["admin"], "details": {"reason": "bad disk"}}
    (found,) = changes(own, "?object=host-0&kind=host.disable")
    assert {name: found[name] for name in disable} == disable
    assert found["request_id"].startswith("req-")
    assert acts(changes(own, "?object=host-0")) == [
        ("bob", "host.enable", "host-0"),
        ("alice", "host.disable", "host-0"),
    ]
    (by_request,) = changes(own, f"?request={enabled.headers['x-openstack-request-id']}")
    assert by_request["kind"] == "host.enable"


def test_each_kind_of_resource_leaves_a_record(own):
    aggregate = own.post("/aggregates", {"name": "rack"}, headers=ALICE).json["uuid"]
    own.put(f"/aggregates/{aggregate}/hosts/host-0", headers=ALICE)
    own.ask("PATCH", f"/aggregates/{aggregate}", {"name": "row"}, headers=ALICE)
    own.delete(f"/aggregates/{aggregate}/hosts/host-0", headers=ALICE)
    own.delete(f"/aggregates/{aggregate}", headers=ALICE)
    for _ in range(2):
        own.put("/flavors/f", {"vcpus": 1, "memory_mb": 1}, headers=BOB)
    own.put("/flavors/f", {"vcpus": 2, "memory_mb": 1}, headers=BOB)
    own.delete("/flavors/f", headers=BOB)
    own.put("/images/i", {"properties": {}}, headers=BOB)
    group = own.post("/groups", {"name": "g", "policy": "affinity"}, headers=BOB).json["uuid"]
    own.delete(f"/groups/{group}", headers=ALICE)
    assert acts(reversed(changes(own))) == [
        ("alice", "aggregate.create", aggregate),
        ("alice", "host.join_aggregate", "host-0"),
        ("alice", "aggregate.update", aggregate),
        ("alice", "host.leave_aggregate", "host-0"),
        ("alice", "aggregate.delete", aggregate),
        ("bob", "flavor.create", "f"),
        ("bob", "flavor.update", "f"),
        ("bob", "flavor.delete", "f"),
        ("bob", "image.create", "i"),
        ("bob", "group.create", group),
        ("alice", "group.delete", group),
    ]
    joined = changes(own, "?object=host-0")[-1]
    assert joined["details"] == {"aggregate": aggregate, "name": "rack"}
    assert acts(changes(own, "?kind=flavor&user=bob"))[0] == ("bob", "flavor.delete", "f")


def test_decision_has_the_client_and_its_record_has_the_outcome(own):
    granted = own.post("/decisions", SMALL, headers=ALICE).json
    refused = own.post("/decisions", {**SMALL, "count": 99}, headers=BOB).json
    own.post("/decisions", {**SMALL, "dry_run": True}, headers=BOB)
    keyed = own.post("/decisions", SMALL, headers={**BOB, "idempotency-key": "k"}).json
    again = own.post("/decisions", SMALL, headers={**BOB, "idempotency-key": "k"}).json
    assert (granted["user_id"], granted["project_id"]) == ("alice", "ops")
    assert own.get(f"/decisions/{granted['uuid']}").json == granted
    assert again == keyed
    found = changes(own, "?kind=decision")
    assert acts(found) == [
        ("bob", "decision.create", keyed["uuid"]),
        ("bob", "decision.create", refused["uuid"]),
        ("alice", "decision.create", granted["uuid"]),
    ]
    assert found[2]["details"] == {"outcome": "granted", "hosts": granted["picks"][0]["host"]}
    assert found[1]["details"]["outcome"] == "refused"
    assert own.post(f"/decisions/{granted['uuid']}/replay", {}).json["is_same"]
    owned = own.post("/decisions", {**SMALL, "project_id": "p", "user_id": "u"}, headers=ALICE).json
    assert (owned["user_id"], owned["project_id"]) == ("u", "p")
    assert changes(own, "?kind=decision")[0]["user_id"] == "alice"


def test_release_of_a_claim_leaves_a_record(own):
    decision = own.post("/decisions", SMALL, headers=ALICE).json
    uuid = decision["picks"][0]["instance_uuid"]
    assert own.delete(f"/instances/{uuid}", headers=BOB).status == 204
    assert acts(changes(own, f"?object={uuid}")) == [("bob", "instance.release", uuid)]


def test_operation_its_story_and_its_instances_name_the_client(own):
    accepted = own.post("/instances", {**SMALL, "count": 2, "name": "web"}, headers=BOB)
    operation = own.get(f"/operations/{accepted.json['operation']}").json
    request_id = accepted.headers["x-openstack-request-id"]
    assert [operation[name] for name in ("user_id", "project_id", "request_id")] == ["bob", "shop", request_id]
    assert operation["story"][0]["told"] == {"user": "bob", "project": "shop", "request_id": request_id}
    for uuid in accepted.json["instances"]:
        (created,) = changes(own, f"?object={uuid}")
        assert (created["kind"], created["user_id"]) == ("instance.create", "bob")
        assert created["details"]["operation"] == accepted.json["operation"]
        shown = own.get(f"/instances/{uuid}").json
        assert (shown["user_id"], shown["project_id"]) == ("bob", "shop")


def test_pages_are_complete_although_changes_have_equal_times(own):
    own.post("/instances", {**SMALL, "count": 7, "name": "web"}, headers=BOB)
    found, cursor = [], ""
    while cursor is not None:
        page = own.get(f"/changes?limit=3&cursor={cursor}" if cursor else "/changes?limit=3").json
        found += page["changes"]
        cursor = page["next"]
    assert len({each["object"] for each in found}) == len(found) == 7


def test_members_of_a_project_see_only_its_own_changes(own):
    own.put("/flavors/a", {"vcpus": 1, "memory_mb": 1}, headers=ALICE)
    own.put("/flavors/b", {"vcpus": 1, "memory_mb": 1}, headers=BOB)
    assert acts(changes(own, headers=READER)) == [("bob", "flavor.create", "b")]
    assert changes(own, "?project=ops", headers=READER) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?kind=hosts", "?kind"),
        ("?cursor=x", "?cursor"),
        ("?cursor=nan_1", "?cursor"),
        ("?cursor=1.0_-1", "?cursor"),
        ("?limit=0", "?limit"),
        ("?since=yesterday", "?since"),
    ],
)
def test_invalid_query_is_refused_with_its_field(own, query, field):
    response = own.get(f"/changes{query}")
    assert (response.status, response.json["field"]) == (400, field)


def test_routes_of_agents_leave_no_records():
    from roost.api.changes.change_note import note_of

    agent_paths = [path for path in TABLE if path.startswith(("/agents", "/orders"))]
    assert agent_paths
    assert all(note_of(route.policy, {}) is None for path in agent_paths for route in TABLE[path].values())


def test_every_writing_route_of_users_has_a_kind():
    from roost.api.changes.change_note import note_of

    missing = [
        (path, method)
        for path, methods in TABLE.items()
        for method, route in methods.items()
        if method != "GET"
        and not path.startswith(("/agents", "/orders", "/session"))
        and path not in READS_BY_POST
        and note_of(route.policy, {}) is None
    ]
    assert missing == []


def test_claims_and_providers_of_placement_clients_leave_records(tmp_path, url):
    with open_roost(None, tmp_path) as product:
        product.install(fleet(1, vcpus=4))
    text, stored = new_token("nova", project="service", roles=("service",))
    operator, other = new_token("ops", roles=("admin",))
    (tmp_path / "tokens.toml").write_text(as_toml(stored) + as_toml(other))
    headers = {"x-auth-token": text, "content-type": "application/json", "openstack-api-version": "placement 1.39"}
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"\n'
    with serve("--database", url, noun="up", folder=tmp_path, settings=settings) as server:
        created = server.ask("POST", "/placement/resource_providers", {"name": "p"}, headers=headers)[2]
        path = f"/placement/resource_providers/{created['uuid']}/inventories"
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
        assert server.ask("PUT", path, body, headers=headers)[0] == 200
        claim = {
            "allocations": {created["uuid"]: {"resources": {"VCPU": 1}}},
            "project_id": "owner",
            "user_id": "owner",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert server.ask("PUT", f"/placement/allocations/{CONSUMER}", claim, headers=headers)[0] == 204
        assert server.ask("DELETE", f"/placement/allocations/{CONSUMER}", headers=headers)[0] == 204
        admin = {"x-auth-token": operator}
        more = {"VCPU": {"total": 8, "reserved": 1, "allocation_ratio": 4.0}, "DISK_GB": {"total": 9}}
        generation = server.ask("GET", path, headers=headers)[2]["resource_provider_generation"]
        body = {"resource_provider_generation": generation, "inventories": more}
        assert server.ask("PUT", path, body, headers=headers)[0] == 200
        assert server.ask("DELETE", f"{path}/DISK_GB", headers=headers)[0] == 204
        found = server.ask("GET", "/v1/changes", headers=admin)[2]["changes"]
        by_object = server.ask("GET", f"/v1/changes?object={CONSUMER}&kind=allocation", headers=admin)[2]["changes"]
    assert [(each["kind"], each["details"]) for each in found if each["kind"].startswith("inventory")] == [
        ("inventory.delete", {"DISK_GB": "total 9 -> none"}),
        (
            "inventory.update",
            {"DISK_GB": "total none -> 9", "VCPU": "total 4 -> 8, reserved 0 -> 1, allocation_ratio 1 -> 4"},
        ),
        ("inventory.update", {"VCPU": "total none -> 4"}),
    ]
    assert [(each["kind"], each["object"]) for each in found[2:]] == [
        ("allocation.delete", CONSUMER),
        ("allocation.update", CONSUMER),
        ("inventory.update", created["uuid"]),
        ("resource_provider.create", created["uuid"]),
    ]
    assert {(each["user_id"], each["project_id"]) for each in found} == {("nova", "service")}
    assert by_object == found[2:4]


def test_reloaded_settings_leave_a_record(tmp_path):
    with serve(noun="up", folder=tmp_path) as server:
        with (tmp_path / "roost.toml").open("a") as file:
            file.write("[filter_scheduler]\nram_weight_multiplier = 3.0\n")
        server.process.send_signal(1)
        wait_until(lambda: "settings_loaded" in server.said)
        url = "/v1/changes?kind=settings"
        (found,) = server.ask("GET", url, headers={"x-auth-token": "admin"})[2]["changes"]
    assert (found["kind"], found["user_id"]) == ("settings.reload", "")
    assert found["details"]["fingerprint"] in server.said
