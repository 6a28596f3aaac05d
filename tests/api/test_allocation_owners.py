"""An agent may change the allocations of its instances, but not their project, user or type."""

import pytest

from roost.simulator.stable_uuids import uuid_of
from tests.api.agent_tokens import AGENT, OWN_ROOT, allocation_body, generation, inventories_body, open_apis

PATH = f"/allocations/{uuid_of('here')}"


@pytest.mark.parametrize(
    "owner_change", [{"project_id": "other"}, {"user_id": "other"}, {"consumer_type": "MIGRATION"}]
)
@pytest.mark.parametrize("way", ["one", "many", "reshape"])
def test_agent_cannot_change_the_owner_of_an_allocation(owner_change, way):
    with open_apis() as apis:
        before = apis.admin("GET", PATH)
        body = allocation_body(apis, "here", {OWN_ROOT: {"VCPU": 2}}) | owner_change
        many = {uuid_of("here"): body}
        inventories = {OWN_ROOT: inventories_body(generation=generation(apis, OWN_ROOT), VCPU=8)}
        response = {
            "one": lambda: apis.ask(AGENT, "PUT", PATH, body),
            "many": lambda: apis.ask(AGENT, "POST", "/allocations", many),
            "reshape": lambda: apis.ask(AGENT, "POST", "/reshaper", {"inventories": inventories, "allocations": many}),
        }[way]()
        assert response.status == 403, response.json
        assert "belongs to another project, user or type" in response.text
        assert apis.admin("GET", PATH) == before


def test_agent_can_change_the_amounts_of_its_instance():
    with open_apis() as apis:
        body = allocation_body(apis, "here", {OWN_ROOT: {"VCPU": 2}})
        assert apis.ask(AGENT, "PUT", PATH, body).status == 204
        empty_body = allocation_body(apis, "here", {}) | {"project_id": "other"}
        assert apis.ask(AGENT, "PUT", PATH, empty_body).status == 204
