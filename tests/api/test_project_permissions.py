"""Roles that a policy file permits to write may do so in their own project only."""

import pytest

from roost.api.access.policy import Policy
from roost.api.v1.policies import DEFAULTS, policy_of
from roost.api.v1.routes import TABLE
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 1}}
MEMBER = {"x-auth-token": "eve", "x-roles": "reader,member", "x-project-id": "ours"}
RULES = {
    name: f"({rule}) or role:member"
    for name, rule in DEFAULTS.items()
    if name.startswith("roost:") and name != "roost:all_projects"
}
OPERATION_PATHS = sorted(
    path for path, methods in TABLE.items() if path.startswith("/instances/{id}/") and "POST" in methods
)
BODIES = {
    "/instances/{id}/resize": {"flavor": {"vcpus": 2}},
    "/instances/{id}/rebuild": {},
}


@pytest.fixture(scope="module")
def own():
    with roost_api(fleet(4, vcpus=32), policy=Policy(RULES, others=DEFAULTS)) as client:
        yield client


def create_instance(own, project, **more):
    """Create an instance in a project; return its UUID."""
    creation = own.post("/instances", {**SMALL, "project_id": project, "name": "web", **more})
    assert creation.status == 202, creation.json
    return creation.json["instances"][0]


def claim_instance(own, project, **more):
    """Claim resources for an instance of a project; return the UUIDs of the decision and the instance."""
    decision = own.post("/decisions", {**SMALL, "project_id": project, **more}).json
    return decision["uuid"], decision["picks"][0]["instance_uuid"]


def test_members_are_allowed_every_operation_by_these_rules():
    routes = [(method, path) for path in TABLE for method in TABLE[path] if not TABLE[path][method].is_open]
    assert all("role:member" in RULES[policy_of(method, path)] for method, path in routes)


@pytest.mark.parametrize("path", OPERATION_PATHS)
def test_operation_on_an_instance_of_another_project_is_not_found(own, path):
    body = BODIES.get(path)
    for theirs in (create_instance(own, "theirs"), claim_instance(own, "theirs")[1]):
        refused = own.post(path.replace("{id}", theirs), body, headers=MEMBER)
        assert (refused.status, refused.json["detail"]) == (404, f"no such instance: {theirs}")
    for ours in (create_instance(own, "ours"), claim_instance(own, "ours")[1]):
        assert own.post(path.replace("{id}", ours), body, headers=MEMBER).status in {202, 409}


@pytest.mark.parametrize("query", ["", "?force=true"])
def test_instance_of_another_project_is_not_deleted(own, query):
    for theirs in (create_instance(own, "theirs"), claim_instance(own, "theirs")[1]):
        assert own.delete(f"/instances/{theirs}{query}", headers=MEMBER).status == 404
        assert own.get(f"/instances/{theirs}").json["task"] in {"", "scheduling"}
    for ours in (create_instance(own, "ours"), claim_instance(own, "ours")[1]):
        assert own.delete(f"/instances/{ours}{query}", headers=MEMBER).status in {202, 204}


def test_decision_of_another_project_does_not_move(own):
    theirs, instance = claim_instance(own, "theirs")
    nothing = uuid_of("nothing")
    refused = own.post(f"/decisions/{theirs}/next", {}, headers=MEMBER)
    assert (refused.status, refused.json["detail"]) == (404, f"no such decision: {theirs}")
    assert own.post(f"/decisions/{nothing}/next", {}, headers=MEMBER).status == 404
    before = own.get(f"/instances/{instance}").json["host"]
    ours, _ = claim_instance(own, "ours")
    assert own.post(f"/decisions/{ours}/next", {}, headers=MEMBER).status == 200
    assert own.get(f"/instances/{instance}").json["host"] == before
