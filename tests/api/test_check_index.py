"""The check index of a dry run: a request with it succeeds only while its choice stays the same."""

import pytest

from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}


@pytest.fixture
def own():
    """Yield the API on three hosts of 4 VCPU."""
    with roost_api(fleet(3, vcpus=4)) as own:
        yield own


def plan(own, **more):
    """Return the answer of a dry run."""
    return own.post("/decisions", {**SMALL, "dry_run": True, **more}).json


def test_unchanged_fleet_accepts_the_check_index(own):
    for _ in range(2):
        dry = plan(own, count=2)
        decision = own.post("/decisions", {**SMALL, "count": 2, "check_index": dry["check_index"]})
        assert decision.status == 201
        assert [pick["host"] for pick in decision.json["picks"]] == [pick["host"] for pick in dry["picks"]]
        assert decision.json["check_index"] is None


def test_change_elsewhere_keeps_the_check_index_valid(own):
    index = plan(own)["check_index"]
    own.ask("PATCH", "/services/host-2", {"disabled": True})
    assert own.post("/decisions", {**SMALL, "check_index": index}).json["picks"][0]["host"] == "host-0"


def test_change_of_the_choice_is_a_conflict_that_claims_nothing(own):
    index = plan(own)["check_index"]
    own.post("/decisions", SMALL)
    before = own.get("/hosts").json
    for path, more in (("/decisions", {}), ("/instances", {"name": "web"})):
        refused = own.post(path, {**SMALL, **more, "check_index": index})
        assert refused.status == 409
        assert refused.json["detail"] == (
            "the fleet has changed since the dry run: the choice would now be host-1; repeat the dry run"
        )
    assert own.get("/hosts").json == before
    assert own.get("/instances?name=web").json["instances"] == []
    assert own.post("/instances", {**SMALL, "name": "web", "check_index": plan(own)["check_index"]}).status == 202


def test_full_fleet_is_a_conflict(own):
    index = plan(own, count=6)["check_index"]
    own.post("/decisions", SMALL)
    refused = own.post("/decisions", {**SMALL, "count": 6, "check_index": index})
    assert (refused.status, "no host fits now" in refused.json["detail"]) == (409, True)


def test_refused_dry_run_has_no_check_index(own):
    assert plan(own, count=7)["check_index"] is None


def test_retry_with_a_key_does_not_check_again(own):
    body = {**SMALL, "name": "web", "check_index": plan(own)["check_index"]}
    key = {"idempotency-key": "web"}
    assert own.post("/instances", body, headers=key).status == 202
    own.post("/decisions", SMALL)
    assert own.post("/instances", body, headers=key).status == 202


@pytest.mark.parametrize("index", ["", "7", "7-abc", "-"])
def test_malformed_index_is_refused(own, index):
    refused = own.post("/decisions", {**SMALL, "check_index": index})
    assert (refused.status, refused.json["field"]) == (400, "$.check_index")


def test_move_has_no_check_index(own):
    pick = own.post("/decisions", SMALL).json["picks"][0]
    body = {**SMALL, "move": {"instance_uuid": pick["instance_uuid"]}, "check_index": f"1-{uuid_of('x')[:8] * 2}"}
    assert own.post("/decisions", body).json["field"] == "$.check_index"
