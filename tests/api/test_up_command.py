"""`roost up`: the whole product over real sockets."""

import pytest

from roost.app import open_roost
from tests.support.fleets.products import fleet, roost
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import read_all, serve

ADMIN = {"x-auth-token": "admin"}
SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 512}}


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of three hosts with 4 VCPU each."""
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(3, vcpus=4))
    return tmp_path


@pytest.fixture
def server(folder):
    with serve(noun="up", folder=folder) as server:
        yield server


def test_decision_is_durable_once_it_is_returned(folder):
    with serve(noun="up", folder=folder) as server:
        status, headers, decision = server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)
        assert (status, decision["outcome"]) == (201, "granted")
        assert headers["location"] == f"{server.address}/v1/decisions/{decision['uuid']}"
        server.process.kill()
        server.process.wait()
    with serve(noun="up", folder=folder) as server:
        assert server.ask("GET", f"/v1/decisions/{decision['uuid']}", headers=ADMIN)[2] == decision
        (instance,) = server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"]
        assert instance["uuid"] == decision["picks"][0]["instance_uuid"]
        assert server.stop() == 0


def test_allocations_of_a_decision_belong_to_its_client_and_can_be_written_back(server):
    uuid = server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[2]["picks"][0]["instance_uuid"]
    held = server.ask("GET", f"/placement/allocations/{uuid}")[2]
    assert held["project_id"] == held["user_id"] == "admin"
    status, _, problem = server.ask("PUT", f"/placement/allocations/{uuid}", {**held, "consumer_type": "INSTANCE"})
    assert status == 204, problem
    assert server.ask("GET", f"/placement/allocations/{uuid}")[2]["allocations"].keys() == held["allocations"].keys()


def test_all_apis_share_one_port(server):
    assert server.ask("GET", "/healthz", headers={})[0] == 200
    assert b"roost_requests_total" in server.ask("GET", "/metrics", headers={})[2]
    providers = server.ask("GET", "/placement/resource_providers", headers=ADMIN)[2]["resource_providers"]
    assert len(providers) == 3
    assert server.ask("GET", "/v1/openapi.json", headers={})[2]["openapi"] == "3.1.0"
    assert server.ask("GET", "/v2", headers=ADMIN)[0] == 404


def test_long_answers_of_its_own_api_are_compressed(server):
    accept = ADMIN | {"accept-encoding": "gzip, deflate"}
    for path in ("/v1/openapi.json", "/v1/fleet"):  # The reader process answers the second one.
        _, plain_headers, plain = server.ask("GET", path, headers=ADMIN)
        status, headers, unpacked = server.ask("GET", path, headers=accept)
        assert (status, headers["content-encoding"], headers["vary"]) == (200, "gzip", "accept-encoding")
        assert int(headers["content-length"]) < int(plain_headers["content-length"]) / 2
        assert (plain_headers["vary"], "content-encoding" in plain_headers) == ("accept-encoding", False)
        assert unpacked | {"now": 0} == plain | {"now": 0}  # The time of the export differs.
    for path in ("/v1/decisions", "/placement/resource_providers"):  # A short answer, and one of the other API.
        assert "content-encoding" not in server.ask("GET", path, headers=accept)[1]


def test_content_that_a_client_has_is_not_sent_again(server):
    for accept in ({}, {"accept-encoding": "gzip"}):
        _, headers, page = server.ask("GET", "/v1/hosts", headers=ADMIN | accept)
        sent = ADMIN | accept | {"if-none-match": f'"x", {headers["etag"]}'}
        status, again, body = server.ask("GET", "/v1/hosts", headers=sent)
        assert (status, body, again["etag"], again["vary"]) == (304, b"", headers["etag"], "accept-encoding")
        assert "content-encoding" not in again
    server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)
    status, changed, body = server.ask("GET", "/v1/hosts", headers=sent)
    assert (status, changed["etag"] == headers["etag"], body == page) == (200, False, False)
    unknown = server.ask("GET", "/v1/hosts", headers={"if-none-match": "*"})
    assert (unknown[0], "etag" in unknown[1]) == (401, False)
    assert "etag" not in server.ask("GET", "/placement/resource_providers", headers=ADMIN)[1]


def test_both_apis_see_the_same_allocations(server):
    decision = server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[2]
    (pick,) = decision["picks"]
    held = server.ask("GET", f"/placement/allocations/{pick['instance_uuid']}", headers=ADMIN)[2]["allocations"]
    assert {uuid: each["resources"] for uuid, each in held.items()} == pick["allocations"]
    server.ask("DELETE", f"/placement/allocations/{pick['instance_uuid']}", headers=ADMIN)
    assert server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"] == []


def test_workers_on_postgresql_see_each_others_decisions(tmp_path, postgres_url):
    with roost_api(fleet(3, vcpus=4), url=postgres_url):
        pass
    with serve("--workers", "2", "--database", postgres_url, noun="up", folder=tmp_path) as server:
        decisions = [server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[2] for _ in range(8)]
        assert [each["outcome"] for each in decisions] == ["granted"] * 6 + ["refused"] * 2
        for each in decisions:
            assert server.ask("GET", f"/v1/decisions/{each['uuid']}", headers=ADMIN)[2] == each
        assert server.ask("GET", "/healthz", headers={})[0] == 200
        assert server.stop() == 0


def test_decision_in_flight_is_completed_before_shutdown(server):
    body = b'{"flavor": {"vcpus": 1}}'
    with server.connect() as client:
        client.sendall(b"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n")
        client.sendall(b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body))
        server.ask("GET", "/healthz", headers={})
        server.tell_to_stop()
        client.sendall(body)
        assert read_all(client).startswith(b"HTTP/1.1 201")
        assert server.process.wait(timeout=30) == 0


def test_limits_apply_to_both_apis(folder):
    with serve(noun="up", folder=folder, settings="body_max_bytes = 100") as server:
        for path in ("/v1/decisions", "/placement/resource_providers"):
            status, headers, body = server.ask("POST", path, {"a": "x" * 200}, headers=ADMIN)
            assert status == 413
            assert headers["content-type"].startswith("application/problem+json") == path.startswith("/v1")
            assert "placement.body_max_bytes" in str(body)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--listen", "0.0.0.0:0"], 3, "noauth2 authenticates no client"),
        (["--listen", "here"], 3, "must be HOST:PORT"),
        (["--workers", "2"], 3, "must be 1 on SQLite"),
        (["--database", "postgresql:///d?host=/nowhere"], 7, "PostgreSQL"),
    ],
)
def test_unusable_options_are_one_line_of_error(tmp_path, arguments, code, sentence):
    result = roost("up", "--listen", "127.0.0.1:0", "--data", tmp_path, *arguments, cwd=tmp_path)
    assert (result.returncode, result.stderr.count("\n"), sentence in result.stderr) == (code, 1, True), result.stderr


def test_permissions_follow_the_role_of_the_token(tmp_path, folder):
    secret = roost("token", "create", "joe", "--role", "reader", "--file", "tokens.toml", cwd=tmp_path).stdout.strip()
    with serve(noun="up", folder=folder, settings='auth_strategy = "tokens"\ntokens_file = "tokens.toml"') as server:
        assert server.ask("GET", "/v1/decisions", headers={"x-auth-token": secret})[0] == 200
        assert server.ask("POST", "/v1/decisions", SMALL, headers={"x-auth-token": secret})[0] == 403
        assert server.ask("GET", "/v1/decisions", headers=ADMIN)[0] == 401
        assert server.ask("GET", "/v1/openapi.json", headers={})[0] == 200


def test_agent_token_reads_decisions_and_releases_instances(tmp_path, folder):
    file = ("--file", "tokens.toml")
    agent, admin = (
        {"x-auth-token": roost("token", "create", role, "--role", role, *file, cwd=tmp_path).stdout.strip()}
        for role in ("agent", "admin")
    )
    with serve(noun="up", folder=folder, settings='auth_strategy = "tokens"\ntokens_file = "tokens.toml"') as server:
        decision = server.ask("POST", "/v1/decisions", SMALL, headers=admin)[2]
        assert server.ask("GET", f"/v1/decisions/{decision['uuid']}", headers=agent)[2] == decision
        assert server.ask("POST", f"/v1/decisions/{decision['uuid']}/next", {}, headers=agent)[0] == 200
        instance = decision["picks"][0]["instance_uuid"]
        assert server.ask("DELETE", f"/v1/instances/{instance}", headers=agent)[0] == 204
        status, _, problem = server.ask("POST", "/v1/decisions", SMALL, headers=agent)
        assert (status, problem["detail"]) == (
            403,
            "policy roost:decisions:create does not allow this; your roles: agent; it needs the role service or admin",
        )
        assert server.ask("GET", "/placement/resource_providers", headers=agent)[0] == 403
