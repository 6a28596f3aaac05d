from roost import PlacementDirect
from roost.app.agent import report_client
from roost.direct.report import DirectHttp
from roost.model.agent_settings import Agent
from tests.reporting import World


def asked(settings):
    """Give how many questions name aggregates, and whether what is known is read again after a day."""
    with PlacementDirect("sqlite://") as placement:
        world = World(DirectHttp(placement))
        world.provider("host")
        world.put("host", "aggregates", [world.u(f"aggregate {number}") for number in range(5)])
        client = report_client(world.network, settings, clock=world.clock)
        client.get_provider_tree_and_ensure_root(world.u("host"))
        questions = [path for path in world.network.paths("GET") if "member_of" in path]
        world.network.asked.clear()
        world.clock.time_s += 86_400
        client.get_provider_tree_and_ensure_root(world.u("host"))
        return len(questions), bool(world.network.asked)


def test_how_an_agent_asks_its_placement_is_set():
    assert asked(Agent()) == (1, True)
    seldom = Agent(resource_provider_association_refresh=0.0, sharing_providers_max_uuids_per_request=2)
    assert asked(seldom) == (3, False)
