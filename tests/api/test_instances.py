"""Instances in the /v1 API: created, built by simulated agents, and deleted."""

import pytest

from roost.api.http import Identity
from roost.simulator.stable_uuids import uuid_of
from tests.support.agents.http_agents import HOSTS, AgentPlayers, three_hosts
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}
UNKNOWN = uuid_of("nobody")


@pytest.fixture
def server(tmp_path):
    """A real server with three hosts of 4 VCPU."""
    with three_hosts(tmp_path / "served") as running_server:
        yield running_server


@pytest.fixture
def players(server):
    """Simulated agents of its hosts, with recent contact."""
    return AgentPlayers(server, HOSTS)


def delete_instance(players, uuid):
    """Delete an instance; return the operation."""
    status, deletion = players.ask("DELETE", f"/instances/{uuid}")
    assert status == 202, deletion
    return players.over(deletion["operation"])


def lines(shown):
    return [(each["kind"], each["told"].get("host", "")) for each in shown["story"]]


def test_instance_is_built_stopped_started_and_deleted(players):
    status, creation = players.ask("POST", "/instances", {**SMALL, "name": "web"})
    (uuid,) = creation["instances"]
    assert status == 202
    built = players.over(creation["operation"])
    (subject,) = built["instances"]
    assert (built["kind"], built["outcome"], built["problem"]) == ("build", "done", "")
    assert (subject["uuid"], subject["name"], subject["status"], subject["host"]) == (uuid, "web", "ACTIVE", "host-0")
    part = players.ask("GET", f"/operations/{subject['operation']}")[1]
    assert (part["kind"], part["outcome"]) == ("spawn", "done")
    assert [(each["host"], each["action"], each["outcome"]) for each in part["orders"]] == [("host-0", "spawn", "ok")]
    shown = players.ask("GET", f"/instances/{uuid}")[1]
    assert (shown["status"], shown["task"], shown["fault"], shown["operation"]) == ("ACTIVE", "", "", None)
    assert shown["attempts"] == [
        {"host": "host-0", "node": "host-0", "cell": "", "claim": "claimed", "problem": ""},
    ]
    assert lines(shown) == [("build.sent", "host-0"), ("spawn.built", "host-0")]
    assert players.ask("GET", f"/decisions/{shown['decision']}")[1]["picks"][0]["instance_uuid"] == uuid

    stopped = players.ask("POST", f"/instances/{uuid}/stop")[1]["operation"]
    assert players.over(stopped)["outcome"] == "done"
    assert players.ask("GET", f"/instances/{uuid}")[1]["status"] == "SHUTOFF"
    status, problem = players.ask("POST", f"/instances/{uuid}/stop")
    assert (status, problem["detail"]) == (
        409,
        (
            f"the instance {uuid} cannot stop in status SHUTOFF: it has to be in ACTIVE; "
            "possible now: delete, start, resize, migrate, evacuate, rebuild, shelve"
        ),
    )
    assert players.over(players.ask("POST", f"/instances/{uuid}/start")[1]["operation"])["outcome"] == "done"
    assert players.used()["host-0"] == 2

    assert delete_instance(players, uuid)["outcome"] == "done"
    assert set(players.used().values()) == {0}
    deleted = players.ask("GET", f"/instances/{uuid}")[1]
    assert (deleted["status"], deleted["host"], deleted["allocations"]) == ("DELETED", "", {})
    assert [each["kind"] for each in deleted["operations"]] == ["delete", "start", "stop", "spawn"]
    assert players.ask("GET", "/instances")[1]["instances"] == []
    assert uuid in [each["uuid"] for each in players.ask("GET", "/instances?status=DELETED")[1]["instances"]]
    status, problem = players.ask("DELETE", f"/instances/{uuid}")
    assert (status, problem["detail"]) == (409, f"the instance {uuid} is deleted")


def test_next_alternate_builds_after_the_first_host_fails(players):
    creation = players.ask("POST", "/instances", {**SMALL, "name": "web"})[1]
    assert players.over(creation["operation"], failing={"host-0"})["outcome"] == "done"
    (uuid,) = creation["instances"]
    shown = players.ask("GET", f"/instances/{uuid}")[1]
    assert (shown["status"], shown["host"]) == ("ACTIVE", "host-1")
    assert [(each["host"], each["problem"]) for each in shown["attempts"]] == [
        ("host-0", "host-0 has no network"),
        ("host-1", ""),
    ]
    assert lines(shown) == [("build.sent", "host-0"), ("spawn.failed", "host-0"), ("spawn.built", "host-1")]
    assert players.used() == {"host-0": 0, "host-1": 2, "host-2": 0}
    delete_instance(players, uuid)


def test_instance_is_in_error_without_allocations_if_all_hosts_fail(players):
    creation = players.ask("POST", "/instances", {**SMALL, "name": "web"})[1]
    assert players.over(creation["operation"], failing=HOSTS)["outcome"] == "failed"
    (uuid,) = creation["instances"]
    shown = players.ask("GET", f"/instances/{uuid}")[1]
    assert (shown["status"], shown["host"], len(shown["attempts"])) == ("ERROR", "", 3)
    assert "has no network" in shown["fault"]
    assert [kind for kind, _ in lines(shown)] == ["build.sent", "spawn.failed", "spawn.failed", "spawn.failed"]
    assert set(players.used().values()) == {0}
    status, problem = players.ask("POST", f"/instances/{uuid}/start")
    assert (status, problem["detail"]) == (
        409,
        f"the instance {uuid} cannot start in status ERROR: it has to be in SHUTOFF; possible now: delete",
    )
    delete_instance(players, uuid)


def test_instance_that_fits_nowhere_has_a_fault_naming_the_shortage(players):
    creation = players.ask("POST", "/instances", {"flavor": {"name": "huge", "vcpus": 99}, "name": "web"})[1]
    operation = players.over(creation["operation"])
    assert (operation["outcome"], operation["instances"][0]["status"]) == ("failed", "ERROR")
    assert "lack 99 VCPU or more" in operation["problem"]
    assert operation["instances"][0]["fault"] == operation["problem"]
    delete_instance(players, creation["instances"][0])


def test_several_instances_are_built_and_force_deleted(players):
    creation = players.ask("POST", "/instances", {**SMALL, "name": "web", "count": 3})[1]
    operation = players.over(creation["operation"])
    assert sorted(each["name"] for each in operation["instances"]) == ["web", "web-2", "web-3"]
    assert sum(players.used().values()) == 6
    deletions = [players.ask("DELETE", f"/instances/{uuid}?force=true") for uuid in creation["instances"]]
    assert [status for status, _ in deletions] == [202] * 3
    # A forced deletion waits for no reply of a host.
    assert any(not any(players.used().values()) for _ in range(10_000))
    assert [players.over(accepted["operation"])["outcome"] for _, accepted in deletions] == ["done"] * 3
    assert [action for _, action in players.done].count("destroy") == 3


def test_key_stands_for_one_operation_across_restarts(url):
    body, key = {**SMALL, "name": "web"}, {"headers": {"idempotency-key": "order-7"}}
    with roost_api(fleet(1, vcpus=4), url=url) as own:
        creation = own.post("/instances", body, **key)
        assert (creation.status, creation.headers["location"]) == (
            202,
            f"http://localhost/operations/{creation.json['operation']}",
        )
        assert own.post("/instances", body).json["operation"] != creation.json["operation"]
    with roost_api(url=url) as own:
        again = own.post("/instances", body, **key)
        assert (again.status, again.json) == (202, creation.json)
        assert again.headers["idempotency-replayed"] == "true"
        for other in ({**body, "name": "db"}, {**body, "count": 2}):
            assert own.post("/instances", other, **key).status == 422
        (uuid,) = creation.json["instances"]
        assert own.delete(f"/instances/{uuid}", **key).status == 422
        ending = {"headers": {"idempotency-key": "end"}}
        end = own.delete(f"/instances/{uuid}", **ending)
        assert (end.status, own.delete(f"/instances/{uuid}", **ending).json) == (202, end.json)
    with roost_api(url=url) as own:
        assert own.delete(f"/instances/{uuid}", **ending).json == end.json
        assert own.delete(f"/instances/{uuid}").json["detail"] == f"the instance {uuid} is being deleted already"


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (SMALL, 400, "missing required field name"),
        ({**SMALL, "name": ""}, 400, "length >= 1"),
        ({**SMALL, "name": "x" * 251}, 400, "length <= 250"),
        ({**SMALL, "name": "a\0b"}, 400, "must be text of 1..250 characters"),
        ({**SMALL, "name": "web", "count": 0}, 400, ">= 1"),
        ({**SMALL, "name": "web", "count": 1001}, 400, "<= 1000"),
        ({**SMALL, "name": "web", "size": 1}, 400, "unknown field size"),
        ({**SMALL, "name": "web", "dry_run": True}, 400, "unknown field dry_run"),
        ({"flavor": "gone", "name": "web"}, 400, "there is no flavor 'gone'"),
        ({**SMALL, "name": "web", "instance_uuids": [UNKNOWN], "count": 2}, 400, "2 instances"),
        ({**SMALL, "name": "web", "instance_uuids": [UNKNOWN, UNKNOWN], "count": 2}, 409, "exists already"),
        ({**SMALL, "name": "web", "move": {"instance_uuid": UNKNOWN}}, 400, "a build cannot include a move"),
    ],
)
def test_invalid_creation_is_refused_and_stores_nothing(own, body, status, sentence):
    own.put("/flavors/gone", {"vcpus": 1})
    own.delete("/flavors/gone")
    response = own.post("/instances", body)
    assert response.status == status
    assert sentence in response.json["detail"]
    assert own.get("/instances").json["instances"] == []


def test_pages_list_each_instance_once_with_and_without_status(own):
    uuids = own.post("/instances", {**SMALL, "name": "web", "count": 3, "project_id": "p"}).json["instances"]
    claims = [own.post("/decisions", SMALL).json["picks"][0]["instance_uuid"] for _ in range(3)]
    for limit in (1, 2, 3, 4, 100):
        listed, cursor = [], ""
        while cursor is not None:
            page = own.get(f"/instances?limit={limit}&cursor={cursor}").json
            listed += [each["uuid"] for each in page["instances"]]
            cursor = page["next"]
        assert listed == [*uuids, *sorted(claims)]
    for query, wanted in (
        ("name=web-2", uuids[1:2]),
        ("name=web*", uuids),
        ("name=web-*", uuids[1:]),
        ("name=Web*", []),
        ("status=BUILD", uuids),
        ("status=ACTIVE", []),
        ("project=p", uuids),
        ("host=HOST-0", sorted(uuid for uuid in claims if own.get(f"/instances/{uuid}").json["host"] == "host-0")),
    ):
        assert [each["uuid"] for each in own.get(f"/instances?{query}").json["instances"]] == wanted
    page = own.get("/instances?name=web*&fields=name,status&limit=2").json
    assert page["instances"] == [{"name": name, "status": "BUILD"} for name in ("web", "web-2")]
    rest = own.get(f"/instances?name=web*&fields=name&limit=2&cursor={page['next']}").json
    assert rest == {"instances": [{"name": "web-3"}], "next": None}
    assert own.get("/instances?fields=name,colour").json["field"] == "?fields"
    assert own.get("/instances?cursor=x").status == 400


def test_claim_without_a_guest_is_released_at_once_and_cannot_stop(own):
    uuid = own.post("/decisions", SMALL).json["picks"][0]["instance_uuid"]
    shown = own.get(f"/instances/{uuid}").json
    assert (shown["name"], shown["status"], shown["attempts"], shown["story"]) == ("", None, [], [])
    response = own.post(f"/instances/{uuid}/stop")
    assert response.status == 409
    assert response.json["detail"] == f"the instance {uuid} cannot stop: it is a claim without a guest"
    assert own.delete(f"/instances/{uuid}").status == 204
    for method, path in (("POST", "start"), ("POST", "stop"), ("GET", ""), ("DELETE", "")):
        assert own.ask(method, f"/instances/{uuid}/{path}".rstrip("/")).status == 404
    assert own.get(f"/operations/{UNKNOWN}").json["detail"] == f"no such operation: {UNKNOWN}"


def test_force_deletion_needs_an_admin_and_readers_change_nothing():
    def identify(headers):
        return Identity(user_id="u", roles=frozenset({headers["x-auth-token"]}))

    with roost_api(fleet(1, vcpus=4), identify=identify) as own:
        (uuid,) = own.post("/instances", {**SMALL, "name": "web"}).json["instances"]
        for role, status in (("reader", 403), ("agent", 403), ("service", 202)):
            response = own.post("/instances", {**SMALL, "name": role}, headers={"x-auth-token": role})
            assert response.status == status
        for role, status in (("reader", 403), ("agent", 403), ("service", 403), ("admin", 202)):
            response = own.delete(f"/instances/{uuid}?force=true", headers={"x-auth-token": role})
            assert response.status == status, response.json
