from contextlib import ExitStack

import pytest

from roost import PlacementDirect
from roost.app.agents.agent_process import AgentOptions, SharedHttp, _build_agent, report_client
from roost.client.agent_token import AgentToken
from roost.client.report_http import ReportHttp
from roost.client.server_list import ServerList
from roost.direct.direct_report import DirectHttp
from roost.errors import PlacementGone
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.settings.agent_settings import Agent
from roost.model.work.guest_use import GuestNeeds
from tests.support.agents.report_clients import World
from tests.support.servers.scripted_server import scripted_server

CELLS = """
[[node]]
cell = [{id = 0, memory_mb = 4096, cpus = [0, 1]}, {id = 1, memory_mb = 4096, cpus = [2, 3]}]
"""


def placement_queries(settings):
    """Return the number of aggregate queries, and whether an agent queries again after a day."""
    with PlacementDirect("sqlite://") as placement:
        world = World(DirectHttp(placement))
        world.provider("host")
        world.put("host", "aggregates", [world.u(f"aggregate {number}") for number in range(5)])
        client = report_client(world.network, settings, clock=world.clock)
        client.get_provider_tree_and_ensure_root(world.u("host"))
        queries = [path for path in world.network.paths("GET") if "member_of" in path]
        world.network.asked.clear()
        world.clock.time_s += 86_400
        client.get_provider_tree_and_ensure_root(world.u("host"))
        return len(queries), bool(world.network.asked)


def test_settings_control_the_placement_queries_of_an_agent():
    assert placement_queries(Agent()) == (1, True)
    rare = Agent(resource_provider_association_refresh=0.0, sharing_providers_max_uuids_per_request=2)
    assert placement_queries(rare) == (3, False)


@pytest.mark.parametrize(("is_packing", "cells"), [(False, [0, 1]), (True, [0, 0])])
def test_packing_setting_prefers_the_fullest_numa_cells(tmp_path, is_packing, cells):
    script = tmp_path / "cells.toml"
    script.write_text(CELLS)
    options = AgentOptions(
        servers=(), token="", driver="fake", options={"script": str(script)}, hosts=("host-1",), is_packing=is_packing
    )
    needs = GuestNeeds(topology=InstanceTopology(cells=(InstanceCell(id=0, cpus=frozenset({0}), memory_mb=64),)))
    with ExitStack() as stack, PlacementDirect("sqlite://") as placement:
        resident = _build_agent(options, "host-1", server=None, placement=DirectHttp(placement), stack=stack)
        resident.driver.start("host-1")
        assert resident.tracker.update("host-1", is_startup=True) is not None
        use = resident.tracker.use("host-1")
        assert [use.claim(name, needs).use.cells[0].host_cell for name in "ab"] == cells


def test_placement_request_without_an_answer_sends_the_next_one_to_the_next_server():
    with (
        scripted_server((200, {"from": 1}), None, None) as (one, first),
        scripted_server((200, {"from": 2})) as (two, second),
    ):
        servers = ServerList([one, two], setting="agent.servers")
        http = SharedHttp(servers, lambda url: ReportHttp(url, headers={}))
        assert http.ask("GET", "/a", version="1.39").body == {"from": 1}
        with pytest.raises(PlacementGone):
            http.ask("GET", "/b", version="1.39")
        assert http.ask("GET", "/b", version="1.39").body == {"from": 2}
        http.close()
    assert [path for _, path, _ in second] == ["/below/b"]
    assert "/below/a" in [path for _, path, _ in first]


def test_placement_request_with_a_refused_token_is_repeated_with_the_new_one():
    token, used = AgentToken("old", read=lambda: "new"), []

    def connect(url):
        used.append(token.text)
        return ReportHttp(url, headers=token.headers)

    with scripted_server((401, {}), (200, {"from": 1}), (401, {})) as (url, _):
        http = SharedHttp(ServerList([url], setting="agent.servers"), connect, token)
        assert http.ask("GET", "/a", version="1.39").body == {"from": 1}
        assert http.ask("GET", "/b", version="1.39").status == 401  # The file has no other token.
        http.close()
    assert used == ["old", "new"]
