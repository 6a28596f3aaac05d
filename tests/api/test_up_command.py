"""The whole product over a real socket."""

import pytest

from roost.app import open_roost
from tests.support.fleets.products import fleet, roost
from tests.support.servers.in_process_api import asking_own
from tests.support.servers.servers import read_all, serve

ADMIN = {"x-auth-token": "admin"}
SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 512}}


@pytest.fixture
def folder(tmp_path):
    """The folder of a database with three hosts of 4 VCPU."""
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(3, vcpus=4))
    return tmp_path


@pytest.fixture
def server(folder):
    with serve(noun="up", folder=folder) as found:
        yield found


def test_a_decision_is_durable_when_it_is_told(folder):
    with serve(noun="up", folder=folder) as server:
        status, headers, made = server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)
        assert (status, made["outcome"]) == (201, "granted")
        assert headers["location"] == f"{server.address}/v1/decisions/{made['uuid']}"
        server.process.kill()
        server.process.wait()
    with serve(noun="up", folder=folder) as server:
        assert server.ask("GET", f"/v1/decisions/{made['uuid']}", headers=ADMIN)[2] == made
        (instance,) = server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"]
        assert instance["uuid"] == made["picks"][0]["instance_uuid"]
        assert server.stop() == 0


def test_what_an_instance_of_nobody_holds_is_shown_as_it_may_be_written_back(server):
    uuid = server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[2]["picks"][0]["instance_uuid"]
    held = server.ask("GET", f"/placement/allocations/{uuid}")[2]
    assert held["project_id"] == held["user_id"] == "00000000-0000-0000-0000-000000000000"
    status, _, told = server.ask("PUT", f"/placement/allocations/{uuid}", {**held, "consumer_type": "INSTANCE"})
    assert status == 204, told
    assert server.ask("GET", f"/placement/allocations/{uuid}")[2]["allocations"].keys() == held["allocations"].keys()


def test_everything_is_on_one_port(server):
    assert server.ask("GET", "/healthz", headers={})[0] == 200
    assert b"roost_requests_total" in server.ask("GET", "/metrics", headers={})[2]
    providers = server.ask("GET", "/placement/resource_providers", headers=ADMIN)[2]["resource_providers"]
    assert len(providers) == 3
    assert server.ask("GET", "/v1/openapi.json", headers={})[2]["openapi"] == "3.1.0"
    assert server.ask("GET", "/v2", headers=ADMIN)[0] == 404


def test_both_apis_see_the_same_columns(server):
    made = server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[2]
    (pick,) = made["picks"]
    held = server.ask("GET", f"/placement/allocations/{pick['instance_uuid']}", headers=ADMIN)[2]["allocations"]
    assert {uuid: each["resources"] for uuid, each in held.items()} == pick["allocations"]
    server.ask("DELETE", f"/placement/allocations/{pick['instance_uuid']}", headers=ADMIN)
    assert server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"] == []


def test_several_processes_on_postgresql_know_each_others_decisions(tmp_path, postgres_url):
    with asking_own(fleet(3, vcpus=4), url=postgres_url):
        pass
    with serve("--workers", "2", "--database", postgres_url, noun="up", folder=tmp_path) as server:
        made = [server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[2] for _ in range(8)]
        assert [each["outcome"] for each in made] == ["granted"] * 6 + ["refused"] * 2
        for each in made:
            assert server.ask("GET", f"/v1/decisions/{each['uuid']}", headers=ADMIN)[2] == each
        assert server.ask("GET", "/healthz", headers={})[0] == 200
        assert server.stop() == 0


def test_a_decision_in_flight_is_answered_before_the_end(server):
    body = b'{"flavor": {"vcpus": 1}}'
    with server.connect() as client:
        client.sendall(b"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n")
        client.sendall(b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body))
        server.ask("GET", "/healthz", headers={})
        server.tell_to_stop()
        client.sendall(body)
        assert read_all(client).startswith(b"HTTP/1.1 201")
        assert server.process.wait(timeout=30) == 0


def test_limits_hold_for_both_apis(folder):
    with serve(noun="up", folder=folder, settings="body_max_bytes = 100") as server:
        for path in ("/v1/decisions", "/placement/resource_providers"):
            status, headers, answered = server.ask("POST", path, {"a": "x" * 200}, headers=ADMIN)
            assert status == 413
            assert headers["content-type"].startswith("application/problem+json") == path.startswith("/v1")
            assert "placement.body_max_bytes" in str(answered)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--listen", "0.0.0.0:0"], 3, "noauth2 authenticates nobody"),
        (["--listen", "here"], 3, "must be HOST:PORT"),
        (["--workers", "2"], 3, "must be 1 on SQLite"),
        (["--database", "postgresql:///d?host=/nowhere"], 7, "PostgreSQL"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(tmp_path, arguments, code, sentence):
    ran = roost("up", "--listen", "127.0.0.1:0", "--data", tmp_path, *arguments, cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n"), sentence in ran.stderr) == (code, 1, True), ran.stderr


def test_tokens_say_who_may(tmp_path, folder):
    secret = roost("token", "create", "joe", "--role", "reader", "--file", "tokens.toml", cwd=tmp_path).stdout.strip()
    with serve(noun="up", folder=folder, settings='auth_strategy = "tokens"\ntokens_file = "tokens.toml"') as server:
        assert server.ask("GET", "/v1/decisions", headers={"x-auth-token": secret})[0] == 200
        assert server.ask("POST", "/v1/decisions", SMALL, headers={"x-auth-token": secret})[0] == 403
        assert server.ask("GET", "/v1/decisions", headers=ADMIN)[0] == 401
        assert server.ask("GET", "/v1/openapi.json", headers={})[0] == 200


def test_an_agent_reads_and_lets_instances_go(tmp_path, folder):
    file = ("--file", "tokens.toml")
    agent, admin = (
        {"x-auth-token": roost("token", "create", role, "--role", role, *file, cwd=tmp_path).stdout.strip()}
        for role in ("agent", "admin")
    )
    with serve(noun="up", folder=folder, settings='auth_strategy = "tokens"\ntokens_file = "tokens.toml"') as server:
        made = server.ask("POST", "/v1/decisions", SMALL, headers=admin)[2]
        assert server.ask("GET", f"/v1/decisions/{made['uuid']}", headers=agent)[2] == made
        assert server.ask("POST", f"/v1/decisions/{made['uuid']}/next", {}, headers=agent)[0] == 200
        instance = made["picks"][0]["instance_uuid"]
        assert server.ask("DELETE", f"/v1/instances/{instance}", headers=agent)[0] == 204
        status, _, told = server.ask("POST", "/v1/decisions", SMALL, headers=agent)
        assert (status, told["detail"]) == (
            403,
            "policy roost:decisions:create does not allow this; your roles: agent",
        )
        assert server.ask("GET", "/placement/resource_providers", headers=agent)[0] == 403
