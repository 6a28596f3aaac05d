"""Migrations and evacuations in the /v1 API."""

import pytest

from roost.simulator.stable_uuids import uuid_of
from tests.support.agents.http_agents import HOSTS, AgentPlayers, three_hosts

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}


@pytest.fixture
def server(tmp_path):
    """A real server with three hosts of 4 VCPU."""
    with three_hosts(tmp_path / "served") as running_server:
        yield running_server


@pytest.fixture
def players(server):
    """Simulated agents of its hosts, with recent contact."""
    return AgentPlayers(server, HOSTS)


@pytest.fixture
def uuid(players):
    """An instance that runs on host-0."""
    accepted = players.ask("POST", "/instances", {**SMALL, "name": "web"})[1]
    assert players.over(accepted["operation"])["outcome"] == "done"
    return accepted["instances"][0]


def test_live_migration_is_completed_and_listed(players, uuid):
    status, accepted = players.ask("POST", f"/instances/{uuid}/live-migrate", {"host": "host-2"}, key="move")
    assert status == 202
    assert players.ask("POST", f"/instances/{uuid}/live-migrate", {"host": "host-2"}, key="move")[1] == accepted
    operation = players.over(accepted["operation"])
    assert (operation["kind"], operation["outcome"], operation["instances"][0]["host"]) == (
        "live_migrate",
        "done",
        "host-2",
    )
    assert players.used() == {"host-0": 0, "host-1": 0, "host-2": 2}
    (move,) = players.ask("GET", "/migrations")[1]["migrations"]
    assert players.ask("GET", f"/migrations/{move['uuid']}") == (200, move)
    assert {name: move[name] for name in ("instance", "kind", "status", "source_host", "target_host", "operation")} == {
        "instance": uuid,
        "kind": "live",
        "status": "confirmed",
        "source_host": "host-0",
        "target_host": "host-2",
        "operation": accepted["operation"],
    }
    assert move["allocations"] == {}
    shown = players.ask("GET", f"/instances/{uuid}")[1]
    assert [each["uuid"] for each in shown["migrations"]] == [move["uuid"]]


REFUSED = [
    ("live-migrate", {"host": "nowhere"}, 400, "$.host: there is no host 'nowhere'"),
    ("live-migrate", {"host": "HOST-0"}, 400, "$.host: the instance is on host-0 already"),
    ("live-migrate", {"to": "host-1"}, 400, "$: Object contains unknown field to"),
    ("evacuate", {}, 409, "cannot be evacuated: the agent of host-0 is there, and was heard"),
]


def test_refused_migration_changes_nothing(players, uuid):
    for act, body, status, detail in REFUSED:
        status_code, problem = players.ask("POST", f"/instances/{uuid}/{act}", body)
        assert (status_code, detail in problem["detail"]) == (status, True), problem
        assert players.ask("GET", "/migrations")[1] == {"migrations": [], "next": None}
        assert players.ask("GET", f"/instances/{uuid}")[1]["task"] == ""


def test_instance_of_a_deregistered_host_is_evacuated(players, uuid):
    assert players.ask("DELETE", "/agents/host-0")[0] == 204
    accepted = players.ask("POST", f"/instances/{uuid}/evacuate", {}, key="rescue")[1]
    assert players.over(accepted["operation"])["outcome"] == "done"
    shown = players.ask("GET", f"/instances/{uuid}")[1]
    (move,) = shown["migrations"]
    assert (shown["status"], shown["host"], move["status"]) == ("ACTIVE", "host-1", "finished")
    assert players.used() == {"host-0": 2, "host-1": 2, "host-2": 0}
    (amounts,) = players.ask("GET", f"/migrations/{move['uuid']}")[1]["allocations"].values()
    assert amounts["VCPU"] == 2


def test_migrations_are_filtered_and_listed_in_pages(players, uuid):
    for host in ("host-1", "host-2", "host-1"):
        accepted = players.ask("POST", f"/instances/{uuid}/live-migrate", {"host": host})[1]
        assert players.over(accepted["operation"])["outcome"] == "done"

    def targets(query):
        return [each["target_host"] for each in players.ask("GET", f"/migrations?{query}")[1]["migrations"]]

    assert targets("") == targets(f"instance={uuid}") == ["host-1", "host-2", "host-1"]
    assert targets("source=HOST-0") == targets(f"instance={uuid}&source=host-0") == ["host-1"]
    assert targets("target=host-1&status=confirmed") == ["host-1", "host-1"]
    assert targets("status=moving") == targets(f"instance={uuid_of('nobody')}") == []
    first = players.ask("GET", "/migrations?limit=2")[1]
    assert len(first["migrations"]) == 2
    assert targets(f"limit=2&cursor={first['next']}") == ["host-1"]
    assert players.ask("GET", f"/migrations/{uuid_of('nobody')}")[0] == 404
    assert players.ask("GET", "/migrations?status=lost")[0] == players.ask("GET", "/migrations?instance=x")[0] == 400
