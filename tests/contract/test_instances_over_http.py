"""Server group slots when a Placement API client replaces or deletes the allocations of a scheduled instance."""

import pytest

from tests.support.fleets.worlds import chosen_hosts, digest, group, hosts, roost_on, roost_with, small_request
from tests.support.servers.in_process_api import placement_api
from tests.support.servers.placement_records import OWNER

MEMBER = small_request(in_group="g")


def place_member(world, policy):
    """Place a group member on one of two hosts; return its uuid, its host and a digest of the state."""
    with roost_with(hosts(2), group("g", policy), store=world.open()) as roost:
        pick = roost.decide(MEMBER).picks[0]
        return pick.instance_uuid, pick.host, digest(roost.state)


def put(world, uuid, **changes):
    """Put the instance's allocations again with some changes; return a digest of the state."""
    with placement_api(world.open()) as api:
        body = {**api.get(f"/allocations/{uuid}").json, "consumer_type": "INSTANCE", **OWNER, **changes}
        assert api.put(f"/allocations/{uuid}", body).status == 204
        return api.serving.run(lambda current: digest(current.state))


@pytest.mark.parametrize("policy", ["anti-affinity", "affinity", "soft-anti-affinity"])
def test_replaced_allocations_keep_host_and_server_group_slot(world, policy):
    uuid, host, before = place_member(world, policy)
    after = put(world, uuid)
    assert (after["groups"], after["columns"]) == (before["groups"], before["columns"])
    with roost_on(world.open()) as roost:
        assert digest(roost.state) == after
        assert (chosen_hosts(roost.decide(MEMBER)) == [host]) == (policy == "affinity")


@pytest.mark.parametrize("act", ["delete", "put nothing"])
def test_deleted_allocations_free_the_server_group_slot(world, act):
    uuid, _, _ = place_member(world, "anti-affinity")
    with roost_on(world.open()) as roost:
        assert roost.decide(MEMBER).outcome == "granted"
        assert roost.decide(MEMBER).outcome == "refused"
    if act == "delete":
        with placement_api(world.open()) as api:
            assert api.delete(f"/allocations/{uuid}").status == 204
    else:
        put(world, uuid, allocations={})
    with roost_on(world.open()) as roost:
        assert roost.decide(MEMBER).outcome == "granted"
