"""The token of an agent creates as many custom names as its hosts need."""

import pytest

from roost.api.answer_options import Options
from roost.api.http import Identity
from roost.api.placement.name_quota import NameQuota
from roost.api.problems import Problem
from tests.api.agent_tokens import AGENT, OTHER, OWN_ROOT, bound, generation, offered

NAMES_MAX = 3
WAYS = {
    "class": lambda apis, name, who=AGENT: apis.ask(who, "PUT", f"/resource_classes/{name}"),
    "posted class": lambda apis, name, who=AGENT: apis.ask(who, "POST", "/resource_classes", {"name": name}),
    "trait": lambda apis, name, who=AGENT: apis.ask(who, "PUT", f"/traits/{name}"),
}


def few():
    return bound(options=Options(agent_names_max=NAMES_MAX))


def statuses(way, apis, names):
    return [WAYS[way](apis, name).status for name in names]


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_creates_no_more_names_than_it_may(way):
    with few() as apis:
        assert statuses(way, apis, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]) == [201] * NAMES_MAX
        refused = WAYS[way](apis, "CUSTOM_D")
        assert refused.status == 403
        assert "limit placement.agent_names_max" in refused.text
        assert WAYS[way](apis, "CUSTOM_D", OTHER).status == 201  # another host has its own
        assert WAYS[way](apis, "CUSTOM_D").status == (409 if way == "posted class" else 204)  # it is there


def test_classes_and_traits_are_counted_apart():
    with few() as apis:
        assert statuses("class", apis, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"]) == [201, 201, 201, 403]
        assert statuses("trait", apis, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"]) == [201, 201, 201, 403]


def test_a_deleted_name_makes_room():
    with few() as apis:
        assert statuses("class", apis, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D"]) == [201, 201, 201, 403]
        apis.admin("DELETE", "/resource_classes/CUSTOM_B")
        assert statuses("class", apis, ["CUSTOM_D", "CUSTOM_E"]) == [201, 403]


def test_what_the_trees_of_its_hosts_use_counts_whoever_created_it():
    with few() as apis:
        for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"):
            apis.admin("PUT", f"/resource_classes/{name}")
            apis.admin("PUT", f"/traits/{name}")
        totals = offered(generation=generation(apis, OWN_ROOT), VCPU=8, CUSTOM_A=1, CUSTOM_B=1)
        apis.admin("PUT", f"/resource_providers/{OWN_ROOT}/inventories", totals)
        worn = {
            "traits": ["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX"],
            "resource_provider_generation": generation(apis, OWN_ROOT),
        }
        apis.admin("PUT", f"/resource_providers/{OWN_ROOT}/traits", worn)
        assert statuses("class", apis, ["CUSTOM_X", "CUSTOM_Y"]) == [201, 403]
        assert statuses("trait", apis, ["CUSTOM_X", "CUSTOM_Y"]) == [201, 403]


def test_names_that_nobody_may_create_are_refused_as_ever_and_do_not_count():
    with few() as apis:
        assert statuses("class", apis, ["VCPU", "FOO", "CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]) == [400, 400, 201, 201, 201]
        assert WAYS["posted class"](apis, 7).status == 400


def test_requests_that_are_under_way_count_until_they_can_be_no_more():
    times = iter([0.0, 1.0, 60.0, 1_000.0])
    names = NameQuota(clock=lambda: next(times))
    with few() as apis:
        state = apis.placement.serving.run(lambda current: current.state)
        names.check(creation(apis, "CUSTOM_A"), state)
        names.check(creation(apis, "CUSTOM_A"), state)  # the client asks again
        with pytest.raises(Problem, match="may create 1 custom traits"):
            names.check(creation(apis, "CUSTOM_B"), state)
        names.check(creation(apis, "CUSTOM_B"), state)


def creation(apis, name):
    request = apis.placement.request("PUT", f"/traits/{name}")
    request.identity = Identity(user_id="agent", hosts=frozenset({"host-0"}))
    request.options = Options(agent_names_max=1)
    request.route, request.parameters = "/traits/{name}", {"name": name}
    return request
