"""The quota of custom names that the agents of a host may create."""

import pytest

from roost.api.answer_options import Options
from roost.api.http import Identity
from roost.api.placement.name_quota import NameQuota
from roost.api.problems import Problem
from tests.api.agent_tokens import AGENT, OTHER, OWN_ROOT, generation, inventories_body, open_apis

NAMES_MAX = 3
REQUESTS = {
    "class": lambda apis, name, token=AGENT: apis.ask(token, "PUT", f"/resource_classes/{name}"),
    "posted class": lambda apis, name, token=AGENT: apis.ask(token, "POST", "/resource_classes", {"name": name}),
    "trait": lambda apis, name, token=AGENT: apis.ask(token, "PUT", f"/traits/{name}"),
}


def open_apis_with_quota():
    return open_apis(options=Options(agent_names_max=NAMES_MAX))


def statuses(kind, apis, names):
    return [REQUESTS[kind](apis, name).status for name in names]


@pytest.mark.parametrize("kind", REQUESTS)
def test_agent_cannot_create_more_names_than_its_quota(kind):
    with open_apis_with_quota() as apis:
        assert statuses(kind, apis, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]) == [201] * NAMES_MAX
        refused = REQUESTS[kind](apis, "CUSTOM_D")
        assert refused.status == 403
        assert "limit placement.agent_names_max" in refused.text
        assert REQUESTS[kind](apis, "CUSTOM_D", OTHER).status == 201  # another host has its own quota
        assert REQUESTS[kind](apis, "CUSTOM_D").status == (
            409 if kind == "posted class" else 204
        )  # the name exists by now


def test_classes_and_traits_have_separate_quotas():
    with open_apis_with_quota() as apis:
        assert statuses("class", apis, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"]) == [201, 201, 201, 403]
        assert statuses("trait", apis, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"]) == [201, 201, 201, 403]


def test_deleting_a_name_frees_the_quota():
    with open_apis_with_quota() as apis:
        assert statuses("class", apis, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"]) == [201, 201, 201, 403]
        apis.admin("DELETE", "/resource_classes/CUSTOM_B")
        assert statuses("class", apis, ["CUSTOM_D", "CUSTOM_E"]) == [201, 403]


def test_names_in_use_on_its_hosts_count_against_the_quota():
    with open_apis_with_quota() as apis:
        for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"):
            apis.admin("PUT", f"/resource_classes/{name}")
            apis.admin("PUT", f"/traits/{name}")
        totals = inventories_body(generation=generation(apis, OWN_ROOT), VCPU=8, CUSTOM_A=1, CUSTOM_B=1)
        apis.admin("PUT", f"/resource_providers/{OWN_ROOT}/inventories", totals)
        traits = {
            "traits": ["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX"],
            "resource_provider_generation": generation(apis, OWN_ROOT),
        }
        apis.admin("PUT", f"/resource_providers/{OWN_ROOT}/traits", traits)
        assert statuses("class", apis, ["CUSTOM_X", "CUSTOM_Y"]) == [201, 403]
        assert statuses("trait", apis, ["CUSTOM_X", "CUSTOM_Y"]) == [201, 403]


def test_invalid_names_are_refused_and_do_not_count():
    with open_apis_with_quota() as apis:
        assert statuses("class", apis, ["VCPU", "FOO", "CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]) == [400, 400, 201, 201, 201]
        assert REQUESTS["posted class"](apis, 7).status == 400


def test_requests_in_progress_count_until_they_expire():
    times = iter([0.0, 1.0, 60.0, 1_000.0])
    names = NameQuota(clock=lambda: next(times))
    with open_apis_with_quota() as apis:
        state = apis.placement.serving.run(lambda current: current.state)
        names.check(creation_request(apis, "CUSTOM_A"), state)
        names.check(creation_request(apis, "CUSTOM_A"), state)  # the client repeats its request
        with pytest.raises(Problem, match="may create 1 custom traits"):
            names.check(creation_request(apis, "CUSTOM_B"), state)
        names.check(creation_request(apis, "CUSTOM_B"), state)


def creation_request(apis, name):
    request = apis.placement.request("PUT", f"/traits/{name}")
    request.identity = Identity(user_id="agent", hosts=frozenset({"host-0"}))
    request.options = Options(agent_names_max=1)
    request.route, request.parameters = "/traits/{name}", {"name": name}
    return request
