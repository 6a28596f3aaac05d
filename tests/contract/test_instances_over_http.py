"""What the scheduler placed and a client of the Placement API replaces or ends: places in server groups come along."""

import pytest

from tests.support.fleets.worlds import chosen, digest, group, hosts, roost_on, roost_with, wish
from tests.support.servers.in_process_api import asking
from tests.support.servers.placement_records import OWNER

MEMBER = wish(in_group="g")


def placed(world, policy):
    """Place one member of a group on one of two hosts; give its uuid, its host, and all that is known then."""
    with roost_with(hosts(2), group("g", policy), store=world.open()) as roost:
        pick = roost.decide(MEMBER).picks[0]
        return pick.instance_uuid, pick.host, digest(roost.state)


def put(world, uuid, **changes):
    """Let the instance hold what it holds, but for some changes; give all that is known then."""
    with asking(world.open()) as api:
        body = {**api.get(f"/allocations/{uuid}").json, "consumer_type": "INSTANCE", **OWNER, **changes}
        assert api.put(f"/allocations/{uuid}", body).status == 204
        return api.serving.run(lambda current: digest(current.state))


@pytest.mark.parametrize("policy", ["anti-affinity", "affinity", "soft-anti-affinity"])
def test_an_instance_keeps_its_host_and_place_when_its_allocations_are_replaced(world, policy):
    uuid, host, before = placed(world, policy)
    after = put(world, uuid)
    assert (after["groups"], after["columns"]) == (before["groups"], before["columns"])
    with roost_on(world.open()) as roost:
        assert digest(roost.state) == after
        assert (chosen(roost.decide(MEMBER)) == [host]) == (policy == "affinity")


@pytest.mark.parametrize("act", ["delete", "put nothing"])
def test_an_instance_that_ends_gives_its_place_back(world, act):
    uuid, _, _ = placed(world, "anti-affinity")
    with roost_on(world.open()) as roost:
        assert roost.decide(MEMBER).outcome == "granted"
        assert roost.decide(MEMBER).outcome == "refused"
    if act == "delete":
        with asking(world.open()) as api:
            assert api.delete(f"/allocations/{uuid}").status == 204
    else:
        put(world, uuid, allocations={})
    with roost_on(world.open()) as roost:
        assert roost.decide(MEMBER).outcome == "granted"
