"""Decisions over the API, in process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from roost.api.access.authentication import trust_headers
from roost.api.access.policy import Policy
from roost.api.placement.application import Application
from roost.model.fleet import Fleet
from roost.model.provider import Inventory, ProviderSpec
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import group, uuid_named
from tests.support.servers.in_process_api import Asking, asking_own

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}
NOBODY = "00000000-0000-4000-8000-000000000000"


def made(own, body=SMALL, **more):
    """Return a decision that was just made."""
    answered = own.post("/decisions", {**SMALL, **body}, **more)
    assert answered.status == 201, answered.json
    return answered.json


def hosts_of(own):
    """Return the host of every instance."""
    return {each["uuid"]: each["host"] for each in own.get("/instances").json["instances"]}


def test_a_decision_has_its_picks_alternates_stages_and_scores(own):
    answered = own.post("/decisions", SMALL)
    decision = answered.json
    assert answered.headers["location"].endswith(f"/decisions/{decision['uuid']}")
    assert [pick["host"] for pick in decision["picks"]] == ["host-0"]
    assert [pick["host"] for pick in decision["alternates"][""]] == ["host-1", "host-2"]
    assert decision["stages"][0] | {"reason": ""} == {"rule": "search", "reason": "", "before": 3, "after": 3}
    assert decision["scores"][0]["total"] == sum(each["contribution"] for each in decision["scores"][0]["weights"])
    assert own.get(f"/decisions/{decision['uuid']}").json == decision


def test_a_refusal_is_a_decision_with_a_reason(own):
    decision = made(own, {"count": 7})
    assert (decision["outcome"], decision["picks"], decision["found"]) == ("refused", [], 6)
    assert "VCPU" in decision["reason"]
    assert own.get(f"/decisions/{decision['uuid']}").json == decision


def test_a_dry_run_says_the_same_host_and_leaves_nothing(own):
    dry = own.post("/decisions", {**SMALL, "dry_run": True})
    assert (dry.status, dry.json["dry_run"]) == (200, True)
    assert own.get("/decisions").json["decisions"] == []
    assert hosts_of(own) == {}
    assert made(own)["picks"][0]["host"] == dry.json["picks"][0]["host"]


def test_a_flavor_is_named_once_it_is_known(own):
    made(own)
    assert made(own, {"flavor": "small"})["outcome"] == "granted"
    refused = own.post("/decisions", {"flavor": "large"})
    assert (refused.status, refused.json["field"]) == (400, "$.flavor")
    made(own, {"flavor": {**SMALL["flavor"], "vcpus": 1}})
    several = "$.flavor: 2 flavors are called 'small'; store a flavor under that name, or give the flavor"
    assert own.post("/decisions", {"flavor": "small"}).json["detail"].startswith(several)


def test_groups_are_named_and_their_rule_holds():
    with asking_own(fleet(2, vcpus=4), group("apart", "anti-affinity")) as own:
        assert [made(own, {"group": "apart"})["outcome"] for _ in range(3)] == ["granted", "granted", "refused"]
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
        ({"flavor": {"vcpus": 1}, "count": 2, "instance_uuids": [NOBODY]}, "$"),
        ({"flavor": {"vcpus": 1}, "instance_uuids": ["x"]}, "$.instance_uuids[0]"),
        ({"flavor": {"vcpus": 1}, "destination": {"aggregates": [["none"]]}}, "$.destination.aggregates[0]"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_place(own, body, field):
    answered = own.post("/decisions", body)
    assert (answered.status, answered.json["field"]) == (400, field), answered.json
    assert answered.headers["content-type"] == "application/problem+json"
    assert answered.json | {"detail": "", "request_id": "", "field": ""} == {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": "",
        "request_id": "",
        "field": "",
    }
    assert own.get("/decisions").json["decisions"] == []


def test_an_instance_that_exists_is_a_conflict(own):
    made(own, {"instance_uuids": [NOBODY]})
    assert own.post("/decisions", {**SMALL, "instance_uuids": [NOBODY]}).status == 409


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
        ({}, "GET", f"/decisions/{NOBODY}", 404),
        ({}, "GET", "/decisions/x/why", 404),
        ({}, "GET", "/instances/x", 404),
        ({}, "DELETE", f"/instances/{NOBODY}", 404),
        ({"content-type": "text/plain"}, "POST", "/decisions", 415),
        ({"idempotency-key": ""}, "POST", "/decisions", 400),
        ({"idempotency-key": "k" * 256}, "POST", "/decisions", 400),
    ],
)
def test_who_may_ask_what(own, headers, method, path, status):
    answered = own.ask(method, path, SMALL if method == "POST" else None, headers=headers)
    assert answered.status == status, answered.json


def test_decisions_are_found_by_what_they_are(own):
    first, second = made(own, {"project_id": "a"}), made(own, {"project_id": "b", "force_hosts": ["host-2"]})
    refused = made(own, {"count": 9, "project_id": "a"})

    def found(query):
        return [each["uuid"] for each in own.get(f"/decisions?{query}").json["decisions"]]

    assert found("") == [refused["uuid"], second["uuid"], first["uuid"]]
    assert found("project=a") == [refused["uuid"], first["uuid"]]
    assert found("host=host-2") == [second["uuid"]]
    assert found("host=host-") == []
    assert found("refused=true") == [refused["uuid"]]
    assert found("refused=false&project=a") == [first["uuid"]]
    assert found("reason=VCPU") == [refused["uuid"]]
    assert found(f"since={refused['decided_at_s']}") == [refused["uuid"]]
    assert found("since=9e9") == []
    for query, field in (
        ("host=a&host=b", "?host"),
        ("limit=0", "?limit"),
        ("refused=perhaps", "?refused"),
        ("x=1", "?"),
    ):
        answered = own.get(f"/decisions?{query}")
        assert (answered.status, answered.json["field"]) == (400, field)


def test_pages_hold_everything_once(own):
    uuids = [made(own, {"flavor": {"name": "tiny", "vcpus": 1}})["uuid"] for _ in range(5)]
    for path, key, wanted in (("/decisions", "decisions", uuids[::-1]), ("/instances", "instances", None)):
        seen, cursor = [], ""
        while cursor is not None:
            page = own.get(f"{path}?limit=2{cursor and f'&cursor={cursor}'}").json
            assert len(page[key]) <= 2
            seen += [each["uuid"] for each in page[key]]
            cursor = page["next"]
        assert len(set(seen)) == len(seen) == 5
        assert wanted in (None, seen)


def test_next_goes_through_the_alternates_and_then_says_so(own):
    decision = made(own)
    (uuid,) = hosts_of(own)
    seen = []
    for left in (1, 0):
        step = own.post(f"/decisions/{decision['uuid']}/next", {}).json
        assert (step["left"], step["pick"]["instance_uuid"]) == (left, uuid)
        seen.append(step["pick"]["host"])
        assert hosts_of(own) == {uuid: seen[-1]}
    assert seen == ["host-1", "host-2"]
    ended = own.post(f"/decisions/{decision['uuid']}/next")
    assert (ended.status, "no alternate is left" in ended.json["detail"]) == (409, True)
    assert hosts_of(own) == {uuid: "host-2"}
    assert own.in_thread(lambda roost: roost.utilisation()["VCPU"]) == (2, 12)


def test_next_from_a_host_that_was_left_already_does_nothing(own):
    decision = made(own)
    path, body = f"/decisions/{decision['uuid']}/next", {"from_host": "host-0"}
    assert own.post(path, body).status == 200
    before = hosts_of(own)
    refused = own.post(path, body)
    assert (refused.status, "not on 'host-0'" in refused.json["detail"]) == (409, True)
    assert hosts_of(own) == before


def test_next_passes_over_a_host_that_is_full_by_now(own):
    decision = made(own)
    made(own, {"flavor": {"name": "whole", "vcpus": 4}, "force_hosts": ["host-1"]})
    assert own.post(f"/decisions/{decision['uuid']}/next").json["pick"]["host"] == "host-2"


@pytest.mark.parametrize("gone", ["host-1", "part of host-1"])
def test_next_passes_over_a_host_that_is_not_there_any_more_or_not_as_a_whole(gone):
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
    with asking_own(Fleet(providers=[*whole.providers, *parts], hosts=whole.hosts)) as own:
        flavor = {**SMALL["flavor"], "extra_specs": {"resources:SRIOV_NET_VF": "1"}}
        decision = made(own, {"flavor": flavor})
        assert [pick["host"] for pick in decision["alternates"][""]] == ["host-1", "host-2"]
        placement = Asking(Application(identify=trust_headers, allows=Policy(is_legacy=True).allows), own.serving)
        for each in [parts[1], whole.providers[1]]:
            if each.name.endswith(gone):
                assert placement.delete(f"/resource_providers/{each.uuid}").status == 204
        assert own.post(f"/decisions/{decision['uuid']}/next").json["pick"]["host"] == "host-2"


def test_next_keeps_the_rule_of_a_group():
    with asking_own(fleet(3, vcpus=4), group("apart", "anti-affinity")) as own:
        first = made(own, {"group": "apart"})
        other = made(own, {"group": "apart"})
        assert [each["picks"][0]["host"] for each in (first, other)] == ["host-0", "host-1"]
        assert own.post(f"/decisions/{first['uuid']}/next").json["pick"]["host"] == "host-2"
        assert made(own, {"group": "apart"})["picks"][0]["host"] == "host-0"
        assert made(own, {"group": "apart"})["outcome"] == "refused"


def test_next_names_one_of_several_instances(own):
    decision = made(own, {"count": 2})
    assert own.post(f"/decisions/{decision['uuid']}/next").status == 400
    uuid = decision["picks"][1]["instance_uuid"]
    step = own.post(f"/decisions/{decision['uuid']}/next", {"instance_uuid": uuid}).json
    assert hosts_of(own)[uuid] == step["pick"]["host"] == "host-2"
    assert own.post(f"/decisions/{decision['uuid']}/next", {"instance_uuid": NOBODY}).status == 404


def test_next_of_what_is_gone_or_was_refused_is_a_conflict(own):
    decision, refused = made(own), made(own, {"count": 9})
    (uuid,) = hosts_of(own)
    assert own.delete(f"/instances/{uuid}").status == 204
    assert own.delete(f"/instances/{uuid}").status == 404
    assert own.post(f"/decisions/{decision['uuid']}/next").status == 409
    assert own.post(f"/decisions/{refused['uuid']}/next").status == 409


def test_a_decision_is_explained_and_made_again(own):
    decision = made(own, {"count": 7})
    told = own.get(f"/decisions/{decision['uuid']}/why").json
    assert told["decision"] == decision
    assert told["explanation"]["never"]["could_fit"] is False
    path = f"/decisions/{decision['uuid']}/replay"
    assert [own.post(path, {"under": under}).json["is_same"] for under in ("stored", "current")] == [True, True]
    granted = made(own)
    only = {"settings": {"filter_scheduler": {"cpu_weight_multiplier": -1.0, "ram_weight_multiplier": -1.0}}}
    again = own.post(f"/decisions/{granted['uuid']}/replay", only).json
    assert (again["is_same"], again["stored"]) == (False, granted)
    for settings in ({"filter_scheduler": {"available_filters": ["os.path"]}}, {"nothing": {"a": 1}}):
        refused = own.post(path, {"settings": settings})
        assert (refused.status, refused.json["field"]) == (400, "$.settings")


def test_capacity_is_counted_by_name_and_by_request(own):
    made(own)
    counted = own.get("/capacity?flavor=small&by=host").json
    assert (counted["count"], len(counted["by_host"])) == (5, 3)
    asked = {"request": {**SMALL, "force_hosts": ["host-1"]}, "by": ["host"]}
    assert own.post("/capacity", asked).json["count"] == 2
    assert own.get("/capacity?flavor=huge").json["field"] == "?flavor"
    assert own.get("/capacity").json["field"] == "?"
    assert own.post("/capacity", {"request": SMALL, "limit": 0}).json["field"] == "$.limit"


def test_the_same_key_gives_the_same_answer_and_claims_once(url):
    key = {"idempotency-key": "order-1"}
    with asking_own(fleet(3, vcpus=4), url=url) as own:
        first = own.post("/decisions", SMALL, headers=key)
        again = own.post("/decisions", SMALL, headers=key)
        assert (again.status, again.json, again.headers["idempotency-replayed"]) == (201, first.json, "true")
        assert own.post("/decisions", {**SMALL, "count": 2}, headers=key).status == 422
        other = own.post("/decisions", SMALL, headers={**key, "x-auth-token": "eve", "x-roles": "admin"})
        assert other.json["uuid"] != first.json["uuid"]
        refused = own.post("/decisions", {**SMALL, "count": 9}, headers={"idempotency-key": "order-2"})
        assert len(hosts_of(own)) == 2
    with asking_own(url=url) as own:
        assert own.post("/decisions", SMALL, headers=key).json == first.json
        assert own.post("/decisions", {**SMALL, "count": 2}, headers=key).status == 422
        large = {**SMALL, "count": 9}
        assert own.post("/decisions", large, headers={"idempotency-key": "order-2"}).json == refused.json
        assert len(hosts_of(own)) == 2


def test_a_key_that_many_use_at_once_claims_once(own):
    gate = threading.Barrier(8)

    def ask(_number):
        gate.wait()
        return own.post("/decisions", SMALL, headers={"idempotency-key": "k"})

    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(ask, range(8)))
    assert {each.status for each in answers} == {201}
    assert len({each.json["uuid"] for each in answers}) == 1
    assert sum("idempotency-replayed" in each.headers for each in answers) == 7
    assert len(hosts_of(own)) == 1


def test_two_processes_that_are_asked_the_same_key_claim_once(postgres_url):
    key = {"idempotency-key": "k"}
    with asking_own(fleet(3, vcpus=4), url=postgres_url) as own, asking_own(url=postgres_url) as other:
        gate = threading.Barrier(2)

        def ask(which):
            gate.wait()
            return which.post("/decisions", SMALL, headers=key)

        with ThreadPoolExecutor(2) as clients:
            answers = list(clients.map(ask, (own, other)))
        assert [each.status for each in answers] == [201, 201]
        assert answers[0].json == answers[1].json
        assert len(hosts_of(own)) == 1


def test_next_under_a_key_goes_on_once(own):
    decision = made(own)
    path, key = f"/decisions/{decision['uuid']}/next", {"idempotency-key": "k"}
    first = own.post(path, headers=key)
    again = own.post(path, headers=key)
    assert (again.json, again.headers["idempotency-replayed"]) == (first.json, "true")
    assert own.post(path).json["pick"]["host"] == "host-2"


def test_what_failed_may_be_asked_again_under_its_key(own):
    key = {"idempotency-key": "k"}
    made(own, {"instance_uuids": [NOBODY]})
    body = {**SMALL, "instance_uuids": [NOBODY]}
    assert own.post("/decisions", body, headers=key).status == 409
    own.delete(f"/instances/{NOBODY}")
    assert own.post("/decisions", body, headers=key).status == 201


def test_clients_that_ask_at_once_share_commits_and_never_overbook(url):
    with asking_own(fleet(4, vcpus=4), url=url) as own, ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(lambda _: own.post("/decisions", SMALL).json, range(12)))
        outcomes = sorted(each["outcome"] for each in answers)
        assert outcomes == ["granted"] * 8 + ["refused"] * 4
        assert own.in_thread(lambda roost: roost.utilisation()["VCPU"]) == (16, 16)
        assert len(own.get("/decisions").json["decisions"]) == 12
