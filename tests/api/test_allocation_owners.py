"""The agent of a host changes what its instances hold there, and not whose they are."""

import pytest

from roost.simulator.stable_uuids import uuid_of
from tests.api.agent_tokens import AGENT, OWN_ROOT, bound, generation, holding, offered

PATH = f"/allocations/{uuid_of('here')}"


@pytest.mark.parametrize("changed", [{"project_id": "other"}, {"user_id": "other"}, {"consumer_type": "MIGRATION"}])
@pytest.mark.parametrize("way", ["one", "many", "reshape"])
def test_an_agent_cannot_give_an_instance_to_others(changed, way):
    with bound() as apis:
        before = apis.admin("GET", PATH)
        wanted = holding(apis, "here", {OWN_ROOT: {"VCPU": 2}}) | changed
        many = {uuid_of("here"): wanted}
        offers = {OWN_ROOT: offered(generation=generation(apis, OWN_ROOT), VCPU=8)}
        answer = {
            "one": lambda: apis.ask(AGENT, "PUT", PATH, wanted),
            "many": lambda: apis.ask(AGENT, "POST", "/allocations", many),
            "reshape": lambda: apis.ask(AGENT, "POST", "/reshaper", {"inventories": offers, "allocations": many}),
        }[way]()
        assert answer.status == 403, answer.json
        assert "is of another project, user or type" in answer.text
        assert apis.admin("GET", PATH) == before


def test_an_agent_may_change_what_its_instance_holds():
    with bound() as apis:
        wanted = holding(apis, "here", {OWN_ROOT: {"VCPU": 2}})
        assert apis.ask(AGENT, "PUT", PATH, wanted).status == 204
        ended = holding(apis, "here", {}) | {"project_id": "other"}
        assert apis.ask(AGENT, "PUT", PATH, ended).status == 204
