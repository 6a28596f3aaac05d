"""The log lines of changes, refused clients and stories, by servers in processes of their own."""

import json

import pytest

from roost.api.access.authentication import as_toml, new_token
from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

TOKENS = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"\n'
SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}
CONSUMER = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of two hosts with 4 VCPU each."""
    with open_roost(None, tmp_path) as product:
        product.install(fleet(2, vcpus=4))
    return tmp_path


@pytest.fixture
def token(folder):
    """The token of an operator with the project ``ops``."""
    text, stored = new_token("alice", project="ops", roles=("admin",))
    (folder / "tokens.toml").write_text(as_toml(stored))
    return text


def lines_of(server, event):
    """Return the lines of an event."""
    return [line for line in map(json.loads, server.errors) if line["event"] == event]


def test_change_of_a_host_names_the_client_and_the_request(folder, token):
    with serve(noun="up", folder=folder, settings=TOKENS) as server:
        headers = {"x-auth-token": token, "content-type": "application/json"}
        body = {"disabled": True, "disabled_reason": "bad disk"}
        statuses, ids = [], []
        for path in ("/v1/services/host-1", "/v1/services/host-1", "/v1/services/nowhere"):
            status, response, _ = server.ask("PATCH", path, body, headers=headers)
            statuses.append(status)
            ids.append(response["x-openstack-request-id"])
        server.stop()
    assert statuses == [200, 200, 404]
    changes = lines_of(server, "change")
    assert [(each["kind"], each["object"], each["result"]) for each in changes] == [
        ("host.disable", "host-1", "done"),
        ("host.disable", "host-1", "unchanged"),
        ("host.update", "nowhere", "refused"),
    ]
    assert [each["request_id"] for each in changes] == ids
    assert [(each["user"], each["project"], each["roles"]) for each in changes] == [("alice", "ops", "admin")] * 3
    assert (changes[0]["reason"], "nowhere" in changes[2]["problem"]) == ("bad disk", True)
    assert [line["event"] for line in map(json.loads, server.errors)][::4] == ["server_begins", "server_ends"]
    assert token not in server.said


def test_decisions_and_claims_are_logged_with_their_results(folder):
    headers = {"x-auth-token": "admin", "content-type": "application/json"}
    with serve(noun="up", folder=folder) as server:
        _, _, granted = server.ask("POST", "/v1/decisions", SMALL, headers=headers)
        server.ask("POST", "/v1/decisions", {**SMALL, "count": 9}, headers=headers)
        server.ask("POST", "/v1/decisions", {**SMALL, "dry_run": True}, headers=headers)
        (provider, *_) = server.ask("GET", "/placement/resource_providers", headers=headers)[2]["resource_providers"]
        claim = {
            "allocations": {provider["uuid"]: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        versioned = {**headers, "openstack-api-version": "placement 1.39"}
        assert server.ask("PUT", f"/placement/allocations/{CONSUMER}", claim, headers=versioned)[0] == 204
        assert server.ask("DELETE", f"/placement/allocations/{CONSUMER}", headers=headers)[0] == 204
        server.stop()
    first, second, claimed, released = lines_of(server, "change")
    assert (first["kind"], first["object"], first["outcome"]) == ("decision.create", granted["uuid"], "granted")
    assert first["hosts"] == granted["picks"][0]["host"]
    assert (second["outcome"], "reason" in second) == ("refused", True)
    assert (claimed["kind"], claimed["object"], claimed["providers"]) == (
        "allocation.update",
        CONSUMER,
        provider["uuid"],
    )
    assert (released["kind"], released["object"], released["user"]) == ("allocation.delete", CONSUMER, "admin")


def test_refused_clients_are_logged_once_and_counted(folder):
    text, stored = new_token("eve", roles=("reader",))
    (folder / "tokens.toml").write_text(as_toml(stored))
    with serve("--log-format", "json", noun="up", folder=folder, settings=TOKENS) as server:
        for _ in range(3):
            assert server.ask("GET", "/v1/hosts", headers={"x-auth-token": "wrong"})[0] == 401
        assert server.ask("DELETE", "/v1/flavors/f", headers={"x-auth-token": text})[0] == 403
        server.stop()
    (login,) = lines_of(server, "login_refused")
    assert (login["client"], login["path"], login["level"]) == ("127.0.0.1", "/v1/hosts", "warning")
    (access,) = lines_of(server, "access_refused")
    assert (access["user"], access["roles"]) == ("eve", "reader")
    assert access["problem"].startswith("policy roost:flavors:delete does not allow this")
    assert "wrong" not in server.said


def test_steps_of_operations_are_logged_in_the_format_of_the_command_line(folder):
    headers = {"x-auth-token": "admin", "content-type": "application/json"}
    with serve("--log-format", "text", noun="up", folder=folder) as server:
        _, _, accepted = server.ask("POST", "/v1/instances", {**SMALL, "count": 9, "name": "web"}, headers=headers)
        wait_until(lambda: "instance.spawn.failed" in server.said or "build.failed" in server.said)
        server.stop()
    asked = next(line for line in server.errors if "operation.build.asked" in line)
    failed = next(line for line in server.errors if "build.failed" in line)
    assert f"operation={accepted['operation']}" in asked
    assert failed.split()[1] == "WARNING"


def test_level_hides_changes(folder):
    headers = {"x-auth-token": "admin", "content-type": "application/json"}
    with serve("--log-level", "warning", noun="up", folder=folder) as server:
        assert server.ask("PUT", "/v1/flavors/f", {"vcpus": 1, "memory_mb": 1}, headers=headers)[0] == 200
        server.stop()
    assert server.errors == []
