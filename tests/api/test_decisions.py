"""Decisions over the /v1 API, in process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from roost.api.access.authentication import trust_headers
from roost.api.access.policy import Policy
from roost.api.placement.application import Application
from roost.api.problems import Problem
from roost.model.fleet import Fleet
from roost.model.names import uuid_bytes, uuid_text
from roost.model.provider import Inventory, ProviderSpec
from tests.api.agents import commit_rows
from tests.support.conductors.work_rows import status
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import group, uuid_named
from tests.support.servers.fleet_files import FleetColumns
from tests.support.servers.in_process_api import ApiClient, roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}
UNKNOWN = "00000000-0000-4000-8000-000000000000"
HOSTS = ["host-0", "host-1", "host-2"]


def decide(own, body=SMALL, **more):
    """Make a decision and return it."""
    response = own.post("/decisions", {**SMALL, **body}, **more)
    assert response.status == 201, response.json
    return response.json


def hosts_of(own):
    """Return the host of every instance."""
    return {each["uuid"]: each["host"] for each in own.get("/instances").json["instances"]}


def test_decision_has_picks_alternates_stages_and_scores(own):
    response = own.post("/decisions", SMALL)
    decision = response.json
    assert response.headers["location"].endswith(f"/decisions/{decision['uuid']}")
    assert [pick["host"] for pick in decision["picks"]] == ["host-0"]
    assert [pick["host"] for pick in decision["alternates"][""]] == ["host-1", "host-2"]
    assert decision["stages"][0] | {"reason": ""} == {"rule": "search", "reason": "", "before": 3, "after": 3}
    assert decision["scores"][0]["total"] == sum(each["contribution"] for each in decision["scores"][0]["weights"])
    assert own.get(f"/decisions/{decision['uuid']}").json == decision


def test_refused_decision_has_a_reason(own):
    decision = decide(own, {"count": 7})
    assert (decision["outcome"], decision["picks"], decision["found"]) == ("refused", [], 6)
    assert "VCPU" in decision["reason"]
    assert own.get(f"/decisions/{decision['uuid']}").json == decision


def test_decisions_of_a_named_instance_include_its_refusals(own):
    def found(query=""):
        decisions = own.get(f"/decisions?instance={UNKNOWN}{query}").json["decisions"]
        return [each["uuid"] for each in decisions]

    other = decide(own, {"count": 7})
    first, granted = (decide(own, {"instance_uuids": [UNKNOWN], **more}) for more in ({"ignore_hosts": HOSTS}, {}))
    assert (first["outcome"], granted["outcome"]) == ("refused", "granted")
    own.delete(f"/instances/{UNKNOWN}")
    again = decide(own, {"instance_uuids": [UNKNOWN], "ignore_hosts": HOSTS})
    assert found() == [again["uuid"], first["uuid"]]
    assert found("&limit=1") == [again["uuid"]]
    assert found("&refused=false") == []
    decide(own, {"instance_uuids": [UNKNOWN]})
    assert len(found()) == 4
    assert other["uuid"] not in found()


def test_dry_run_chooses_the_same_host_and_stores_nothing(own):
    dry = own.post("/decisions", {**SMALL, "dry_run": True})
    assert (dry.status, dry.json["dry_run"]) == (200, True)
    assert own.get("/decisions").json["decisions"] == []
    assert hosts_of(own) == {}
    assert decide(own)["picks"][0]["host"] == dry.json["picks"][0]["host"]


@pytest.mark.parametrize(
    ("typo", "problem"),
    [
        ({"hints": {"diferent_host": [UNKNOWN]}}, "the hint 'diferent_host' has no effect: no enabled filter reads it"),
        ({"flavor": {"vcpus": 1, "extra_specs": {"hw:cpu_polcy": "dedicated"}}}, "hw:cpu_polcy"),
    ],
)
def test_misspelled_part_is_a_warning_or_with_strict_an_error(own, typo, problem):
    (warning,) = decide(own, typo)["warnings"]
    assert problem in warning
    before = own.get("/decisions").json
    for path, name in (("/decisions", {}), ("/instances", {"name": "a"})):
        refused = own.post(path, {**SMALL, **typo, **name, "strict": True})
        assert (refused.status, warning in refused.json["detail"]) == (400, True), refused.json
    assert own.get("/decisions").json == before
    assert own.post("/instances", {**SMALL, **typo, "name": "a"}).json["warnings"] == [warning]


def test_known_flavor_can_be_given_by_name(own):
    decide(own)
    assert decide(own, {"flavor": "small"})["outcome"] == "granted"
    refused = own.post("/decisions", {"flavor": "large"})
    assert (refused.status, refused.json["field"]) == (400, "$.flavor")
    decide(own, {"flavor": {**SMALL["flavor"], "vcpus": 1}})
    several = "$.flavor: 2 flavors have the name 'small'; store a flavor under that name, or give the flavor"
    assert own.post("/decisions", {"flavor": "small"}).json["detail"].startswith(several)


def test_group_is_given_by_name_and_its_policy_holds():
    with roost_api(fleet(2, vcpus=4), group("apart", "anti-affinity")) as own:
        assert [decide(own, {"group": "apart"})["outcome"] for _ in range(3)] == ["granted", "granted", "refused"]
        refused = own.post("/decisions", {**SMALL, "group": "together"})
        assert (refused.status, refused.json["field"]) == (400, "$.group")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"flavor": {"vcpux": 1}}, "$.flavor"),
        ({"flavor": {"vcpus": "many"}}, "$.flavor.vcpus"),
        ({"flavor": {"vcpus": -1}}, "$.flavor.vcpus"),
        ({"flavor": {}, "dry": True}, "$"),
        ({}, "$"),
        ([], "$"),
        (b"{", "$"),
        (b"\xff", "$"),
        (b"[" * 100_000, "$"),
        ({"flavor": {"vcpus": 1}, "count": 2, "instance_uuids": [UNKNOWN]}, "$"),
        ({"flavor": {"vcpus": 1}, "instance_uuids": ["x"]}, "$.instance_uuids[0]"),
        ({"flavor": {"vcpus": 1}, "destination": {"aggregates": [["none"]]}}, "$.destination.aggregates[0]"),
    ],
)
def test_invalid_decision_names_the_field(own, body, field):
    response = own.post("/decisions", body)
    assert (response.status, response.json["field"]) == (400, field), response.json
    assert response.headers["content-type"] == "application/problem+json"
    more = {"missing": "aggregate"} if "aggregates" in field else {}
    assert response.json | {"detail": "", "request_id": "", "field": ""} == more | {
        "type": "/v1/errors#missing-reference" if more else "/v1/errors#invalid-field",
        "title": "Bad Request",
        "status": 400,
        "detail": "",
        "request_id": "",
        "field": "",
    }
    assert own.get("/decisions").json["decisions"] == []


def test_existing_instance_is_a_conflict(own):
    decide(own, {"instance_uuids": [UNKNOWN]})
    assert own.post("/decisions", {**SMALL, "instance_uuids": [UNKNOWN]}).status == 409


@pytest.mark.parametrize(
    ("headers", "method", "path", "status"),
    [
        ({"x-auth-token": ""}, "GET", "/decisions", 401),
        ({"x-auth-token": "joe"}, "GET", "/decisions", 403),
        ({"x-auth-token": "joe", "x-roles": "reader"}, "GET", "/decisions", 200),
        ({"x-auth-token": "joe", "x-roles": "reader"}, "POST", "/decisions", 403),
        ({"x-auth-token": "joe", "x-roles": "service"}, "POST", "/decisions", 201),
        ({}, "PATCH", "/decisions", 405),
        ({}, "GET", "/nothing", 404),
        ({}, "GET", f"/decisions/{UNKNOWN}", 404),
        ({}, "GET", "/decisions/x/why", 404),
        ({}, "GET", "/instances/x", 404),
        ({}, "DELETE", f"/instances/{UNKNOWN}", 404),
        ({"content-type": "text/plain"}, "POST", "/decisions", 415),
        ({"idempotency-key": ""}, "POST", "/decisions", 400),
        ({"idempotency-key": "k" * 256}, "POST", "/decisions", 400),
    ],
)
def test_response_status_by_role_method_and_path(own, headers, method, path, status):
    response = own.ask(method, path, SMALL if method == "POST" else None, headers=headers)
    assert response.status == status, response.json


def test_decisions_are_filtered_by_query_parameters(own):
    first, second = decide(own, {"project_id": "a"}), decide(own, {"project_id": "b", "force_hosts": ["host-2"]})
    refused = decide(own, {"count": 9, "project_id": "a"})

    def list_uuids(query):
        return [each["uuid"] for each in own.get(f"/decisions?{query}").json["decisions"]]

    assert list_uuids("") == [refused["uuid"], second["uuid"], first["uuid"]]
    assert list_uuids("project=a") == [refused["uuid"], first["uuid"]]
    assert list_uuids("host=host-2") == [second["uuid"]]
    assert list_uuids("host=host-") == []
    assert list_uuids("refused=true") == [refused["uuid"]]
    assert list_uuids("refused=false&project=a") == [first["uuid"]]
    assert list_uuids("reason=VCPU") == [refused["uuid"]]
    assert list_uuids(f"since={refused['decided_at_s']}") == [refused["uuid"]]
    assert list_uuids("since=9e9") == []
    for query, field in (
        ("host=a&host=b", "?host"),
        ("limit=0", "?limit"),
        ("refused=perhaps", "?refused"),
        ("x=1", "?"),
    ):
        response = own.get(f"/decisions?{query}")
        assert (response.status, response.json["field"]) == (400, field)


def test_pages_list_every_item_once(own):
    uuids = [decide(own, {"flavor": {"name": "tiny", "vcpus": 1}})["uuid"] for _ in range(5)]
    for path, key, wanted in (("/decisions", "decisions", uuids[::-1]), ("/instances", "instances", None)):
        listed, cursor = [], ""
        while cursor is not None:
            page = own.get(f"{path}?limit=2{cursor and f'&cursor={cursor}'}").json
            assert len(page[key]) <= 2
            listed += [each["uuid"] for each in page[key]]
            cursor = page["next"]
        assert len(set(listed)) == len(listed) == 5
        assert wanted in (None, listed)


def test_next_tries_each_alternate_and_then_conflicts(own):
    decision = decide(own)
    (uuid,) = hosts_of(own)
    hosts = []
    for left in (1, 0):
        step = own.post(f"/decisions/{decision['uuid']}/next", {}).json
        assert (step["left"], step["pick"]["instance_uuid"]) == (left, uuid)
        hosts.append(step["pick"]["host"])
        assert hosts_of(own) == {uuid: hosts[-1]}
    assert hosts == ["host-1", "host-2"]
    ended = own.post(f"/decisions/{decision['uuid']}/next")
    assert (ended.status, "no alternate is left" in ended.json["detail"]) == (409, True)
    assert hosts_of(own) == {uuid: "host-2"}
    assert own.in_thread(lambda roost: roost.utilisation()["VCPU"]) == (2, 12)


def test_next_from_a_host_already_left_changes_nothing(own):
    decision = decide(own)
    path, body = f"/decisions/{decision['uuid']}/next", {"from_host": "host-0"}
    assert own.post(path, body).status == 200
    before = hosts_of(own)
    refused = own.post(path, body)
    assert (refused.status, "not on 'host-0'" in refused.json["detail"]) == (409, True)
    assert hosts_of(own) == before


def test_next_skips_a_full_host(own):
    decision = decide(own)
    decide(own, {"flavor": {"name": "whole", "vcpus": 4}, "force_hosts": ["host-1"]})
    assert own.post(f"/decisions/{decision['uuid']}/next").json["pick"]["host"] == "host-2"


@pytest.mark.parametrize("deleted", ["host-1", "part of host-1"])
def test_next_skips_a_deleted_or_incomplete_host(deleted):
    whole = fleet(3, vcpus=4)
    parts = [
        ProviderSpec(
            uuid=uuid_named(f"part of {each.name}"),
            name=f"part of {each.name}",
            parent_uuid=each.uuid,
            inventories={"SRIOV_NET_VF": Inventory(total=2)},
        )
        for each in whole.providers
    ]
    with roost_api(Fleet(providers=[*whole.providers, *parts], hosts=whole.hosts)) as own:
        flavor = {**SMALL["flavor"], "extra_specs": {"resources:SRIOV_NET_VF": "1"}}
        decision = decide(own, {"flavor": flavor})
        assert [pick["host"] for pick in decision["alternates"][""]] == ["host-1", "host-2"]
        placement = ApiClient(Application(identify=trust_headers, allows=Policy(is_legacy=True).allows), own.serving)
        for each in [parts[1], whole.providers[1]]:
            if each.name.endswith(deleted):
                assert placement.delete(f"/resource_providers/{each.uuid}").status == 204
        assert own.post(f"/decisions/{decision['uuid']}/next").json["pick"]["host"] == "host-2"


def test_next_keeps_the_group_policy():
    with roost_api(fleet(3, vcpus=4), group("apart", "anti-affinity")) as own:
        first = decide(own, {"group": "apart"})
        other = decide(own, {"group": "apart"})
        assert [each["picks"][0]["host"] for each in (first, other)] == ["host-0", "host-1"]
        assert own.post(f"/decisions/{first['uuid']}/next").json["pick"]["host"] == "host-2"
        assert decide(own, {"group": "apart"})["picks"][0]["host"] == "host-0"
        assert decide(own, {"group": "apart"})["outcome"] == "refused"


def test_next_needs_an_instance_if_there_are_several(own):
    decision = decide(own, {"count": 2})
    assert own.post(f"/decisions/{decision['uuid']}/next").status == 400
    uuid = decision["picks"][1]["instance_uuid"]
    step = own.post(f"/decisions/{decision['uuid']}/next", {"instance_uuid": uuid}).json
    assert hosts_of(own)[uuid] == step["pick"]["host"] == "host-2"
    assert own.post(f"/decisions/{decision['uuid']}/next", {"instance_uuid": UNKNOWN}).status == 404


def test_next_conflicts_for_deleted_or_refused_instances(own):
    decision, refused = decide(own), decide(own, {"count": 9})
    (uuid,) = hosts_of(own)
    assert own.delete(f"/instances/{uuid}").status == 204
    assert own.delete(f"/instances/{uuid}").status == 404
    assert own.post(f"/decisions/{decision['uuid']}/next").status == 409
    assert own.post(f"/decisions/{refused['uuid']}/next").status == 409


def test_decision_is_explained_and_replayed(own):
    decision = decide(own, {"count": 7})
    why = own.get(f"/decisions/{decision['uuid']}/why").json
    assert why["decision"] == decision
    assert why["explanation"]["never"]["could_fit"] is False
    path = f"/decisions/{decision['uuid']}/replay"
    assert [own.post(path, {"under": under}).json["is_same"] for under in ("stored", "current")] == [True, True]
    granted = decide(own)
    settings = {"settings": {"filter_scheduler": {"cpu_weight_multiplier": -1.0, "ram_weight_multiplier": -1.0}}}
    again = own.post(f"/decisions/{granted['uuid']}/replay", settings).json
    assert (again["is_same"], again["stored"]) == (False, granted)
    for invalid in ({"filter_scheduler": {"available_filters": ["os.path"]}}, {"nothing": {"a": 1}}):
        refused = own.post(path, {"settings": invalid})
        assert (refused.status, refused.json["field"]) == (400, "$.settings")


def test_capacity_is_counted_by_flavor_name_and_by_request(own):
    decide(own)
    counted = own.get("/capacity?flavor=small&by=host").json
    assert (counted["count"], len(counted["by_host"])) == (5, 3)
    body = {"request": {**SMALL, "force_hosts": ["host-1"]}, "by": ["host"]}
    assert own.post("/capacity", body).json["count"] == 2
    assert own.get("/capacity?flavor=huge").json["field"] == "?flavor"
    assert own.get("/capacity").json["field"] == "?"
    assert own.post("/capacity", {"request": SMALL, "limit": 0}).json["field"] == "$.limit"


def test_capacity_of_each_host_is_a_column(own):
    decide(own)
    own.ask("PATCH", "/services/host-2", {"disabled": True})
    body = {"request": SMALL}
    listed = own.post("/capacity", body | {"by": ["host"]}).json
    answer = own.post("/capacity/columns", body)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/octet-stream")
    file = FleetColumns(answer.body)
    assert file.columns["count"] == [each["count"] for each in listed["by_host"]]
    assert sorted(file.columns["count"]) == [0, 1, 2]
    assert file.columns["is_at_least"] == [0, 0, 0]
    head = file.head
    assert (head["flavor"], head["adds_up"], head["warnings"]) == ("small", True, [])
    assert len(head["generation"]) == 32
    limited = FleetColumns(own.get("/capacity/columns?flavor=small&limit=1").body)
    assert limited.columns["count"] == [min(each, 1) for each in file.columns["count"]]
    assert limited.columns["is_at_least"] == [int(each > 1) for each in file.columns["count"]]
    assert limited.head["position"] == head["position"]
    unknown = own.get("/capacity/columns?flavor=huge")
    assert (unknown.status, unknown.json["field"]) == (400, "?flavor")


def test_capacity_is_counted_after_a_change_of_the_fleet(own):
    body = {"request": SMALL}
    assert own.post("/capacity", body).json["count"] == 6
    assert own.post("/capacity", body | {"without_hosts": ["host-0"]}).json["count"] == 4
    assert own.post("/capacity", body | {"add_hosts": [{"like": "host-0", "count": 5}]}).json["count"] == 16
    assert own.post("/capacity", body | {"without_zones": ["nova"]}).json["count"] == 0
    assert own.post("/capacity", body).json["count"] == 6
    for change, field in (
        ({"without_zones": ["mars"]}, "$.without_zones[0]"),
        ({"without_hosts": ["host-7"]}, "$.without_hosts[0]"),
        ({"add_hosts": [{"like": "host-7", "count": 1}]}, "$.add_hosts[0].like"),
        ({"add_hosts": [{"like": "host-0", "count": 9999}] * 2}, "$.add_hosts"),
        ({"add_hosts": [{"like": "host-0", "count": 0}]}, "$.add_hosts[0].count"),
    ):
        refused = own.post("/capacity", body | change)
        assert (refused.status, refused.json["field"]) == (400, field), refused.json


def test_idempotency_key_replays_the_response_without_a_second_claim(url):
    key = {"idempotency-key": "order-1"}
    with roost_api(fleet(3, vcpus=4), url=url) as own:
        first = own.post("/decisions", SMALL, headers=key)
        again = own.post("/decisions", SMALL, headers=key)
        assert (again.status, again.json, again.headers["idempotency-replayed"]) == (201, first.json, "true")
        assert own.post("/decisions", {**SMALL, "count": 2}, headers=key).status == 422
        other = own.post("/decisions", SMALL, headers={**key, "x-auth-token": "eve", "x-roles": "admin"})
        assert other.json["uuid"] != first.json["uuid"]
        refused = own.post("/decisions", {**SMALL, "count": 9}, headers={"idempotency-key": "order-2"})
        assert len(hosts_of(own)) == 2
    with roost_api(url=url) as own:
        assert own.post("/decisions", SMALL, headers=key).json == first.json
        assert own.post("/decisions", {**SMALL, "count": 2}, headers=key).status == 422
        large = {**SMALL, "count": 9}
        assert own.post("/decisions", large, headers={"idempotency-key": "order-2"}).json == refused.json
        assert len(hosts_of(own)) == 2


def test_concurrent_requests_with_one_key_claim_once(own):
    gate = threading.Barrier(8)

    def send(_number):
        gate.wait()
        return own.post("/decisions", SMALL, headers={"idempotency-key": "k"})

    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(send, range(8)))
    assert {each.status for each in answers} == {201}
    assert len({each.json["uuid"] for each in answers}) == 1
    assert sum("idempotency-replayed" in each.headers for each in answers) == 7
    assert len(hosts_of(own)) == 1


def test_two_processes_with_one_key_claim_once(postgres_url):
    key = {"idempotency-key": "k"}
    with roost_api(fleet(3, vcpus=4), url=postgres_url) as own, roost_api(url=postgres_url) as other:
        gate = threading.Barrier(2)

        def send(which):
            gate.wait()
            return which.post("/decisions", SMALL, headers=key)

        with ThreadPoolExecutor(2) as clients:
            answers = list(clients.map(send, (own, other)))
        assert [each.status for each in answers] == [201, 201]
        assert answers[0].json == answers[1].json
        assert len(hosts_of(own)) == 1


def test_next_with_a_key_moves_once(own):
    decision = decide(own)
    path, key = f"/decisions/{decision['uuid']}/next", {"idempotency-key": "k"}
    first = own.post(path, headers=key)
    again = own.post(path, headers=key)
    assert (again.json, again.headers["idempotency-replayed"]) == (first.json, "true")
    assert own.post(path).json["pick"]["host"] == "host-2"


def test_failed_request_may_be_repeated_with_its_key(own):
    key = {"idempotency-key": "k"}
    decide(own, {"instance_uuids": [UNKNOWN]})
    body = {**SMALL, "instance_uuids": [UNKNOWN]}
    assert own.post("/decisions", body, headers=key).status == 409
    own.delete(f"/instances/{UNKNOWN}")
    assert own.post("/decisions", body, headers=key).status == 201


def test_concurrent_decisions_never_overcommit(url):
    with roost_api(fleet(4, vcpus=4), url=url) as own, ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(lambda _: own.post("/decisions", SMALL).json, range(12)))
        outcomes = sorted(each["outcome"] for each in answers)
        assert outcomes == ["granted"] * 8 + ["refused"] * 4
        assert own.in_thread(lambda roost: roost.utilisation()["VCPU"]) == (16, 16)
        assert len(own.get("/decisions").json["decisions"]) == 12


def test_decisions_of_an_instance_are_not_read_for_a_client_that_left(own):
    decided = uuid_bytes(decide(own)["uuid"])
    row = status(decision_uuid=decided)
    commit_rows(own, row)
    request = own.request("GET", f"/decisions?instance={uuid_text(row.uuid)}")
    task = own.application.enter(request)
    request.is_abandoned = True
    with pytest.raises(Problem, match="the client disconnected"):
        own.serving.run(task)
