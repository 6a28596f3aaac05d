"""Agents of the program before work with servers of this one, and the reverse."""

import pytest

from tests.support.fleets.products import ROOT
from tests.support.servers.clusters import guests_on, hosts_up, running_agents
from tests.support.servers.servers import ADMIN, serve
from tests.support.wait import wait_until

pytestmark = pytest.mark.long


def statuses(server):
    return [each["status"] for each in server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"]]


@pytest.mark.parametrize("is_agent_older", [True, False])
def test_an_agent_of_another_version_reports_builds_and_deletes(is_agent_older, older, tmp_path):
    own = ROOT / "src"
    server_sources, agent_sources = (own, older) if is_agent_older else (older, own)
    guests = tmp_path / "guests"
    options = ("--host", "host-1", "--state-dir", tmp_path / "state", "--option", f"state={guests}")
    with (
        serve(noun="up", folder=tmp_path, sources=server_sources) as server,
        running_agents(server, tmp_path, *options, sources=agent_sources) as agent,
    ):
        wait_until(lambda: hosts_up(server) == {"host-1"})
        body = {"flavor": {"vcpus": 1, "memory_mb": 1}, "name": "web"}
        assert server.ask("POST", "/v1/instances", body, headers=ADMIN)[0] == 202
        wait_until(lambda: statuses(server) == ["ACTIVE"])
        ((uuid, places),) = guests_on(guests).items()
        assert places == [("host-1", "running")]
        assert server.ask("POST", f"/v1/instances/{uuid}/stop", {}, headers=ADMIN)[0] == 202
        wait_until(lambda: statuses(server) != ["ACTIVE"] and guests_on(guests) == {uuid: [("host-1", "stopped")]})
        assert server.ask("DELETE", f"/v1/instances/{uuid}", headers=ADMIN)[0] == 202
        wait_until(lambda: guests_on(guests) == {})
        assert agent.poll() is None
        assert '"level":"error"' not in server.said + (tmp_path / "agent.log").read_text()
