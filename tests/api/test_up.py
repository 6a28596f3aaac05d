"""The whole product over a real socket."""

import pytest

from roost.app import open_roost
from tests.products import fleet
from tests.servers import serve

ADMIN = {"x-auth-token": "admin"}
SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 512}}


@pytest.fixture
def folder(tmp_path):
    """Give the folder of a database with three hosts of 4 VCPU."""
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
