"""A dry run equals the real decision bit for bit, and a stored decision replays to itself."""

from collections import Counter
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from roost.app import open_roost
from roost.model.fleet import Departure
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.support.fleets.worlds import aggregate, group, host, merge_fleets
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve

FLEET = merge_fleets(
    aggregate("zone-a", availability_zone="a"),
    aggregate("fast", ssd="true"),
    *(
        host(f"h{n}", aggregates=["zone-a"][: n % 2] + ["fast"][: n % 3 == 0], VCPU=4 + n % 3, MEMORY_MB=64)
        for n in range(7)
    ),
    group("apart", "anti-affinity"),
    group("near", "affinity"),
)
# Fields that differ between any two decisions.
VARYING = {"uuid": "", "decided_at_s": 0.0, "dry_run": False, "seed": 0, "position": 0, "check_index": None}

REQUESTS = st.fixed_dictionaries(
    {
        "flavor": st.fixed_dictionaries(
            {"name": st.sampled_from(["one", "two"]), "vcpus": st.integers(0, 5), "memory_mb": st.integers(0, 40)}
        )
    },
    optional={
        "count": st.integers(1, 4),
        "group": st.sampled_from(["apart", "near"]),
        "availability_zone": st.sampled_from(["a", "nova", "none"]),
        "ignore_hosts": st.lists(st.sampled_from(["h0", "h1", "h5"]), max_size=2),
        "force_hosts": st.lists(st.sampled_from(["h2", "h3"]), max_size=1),
        "hints": st.dictionaries(st.just("different_cell"), st.just("x")),
    },
)


@settings(max_examples=40)
@given(st.lists(REQUESTS, min_size=1, max_size=8))
def test_dry_run_equals_the_real_decision(requests):
    with roost_api(FLEET) as own:
        for request in requests:
            dry = own.post("/decisions", {**request, "dry_run": True})
            real = own.post("/decisions", {**request, "check_index": dry.json.get("check_index")})
            if real.status != 201:
                assert (dry.status, dry.json["detail"]) == (real.status, real.json["detail"])
                continue
            assert comparable(dry.json) == comparable(real.json)
            assert own.post(f"/decisions/{real.json['uuid']}/replay", {}).json["is_same"]


@settings(max_examples=40)
@given(REQUESTS, st.lists(REQUESTS, max_size=3))
def test_explanation_equals_the_dry_run_and_why_of_the_real_decision(request_, earlier):
    with roost_api(FLEET) as own:
        for each in earlier:
            own.post("/decisions", each)
        explained = own.post("/explanations", request_)
        dry = own.post("/decisions", {**request_, "dry_run": True})
        if dry.status != 200:
            assert (explained.status, explained.json["detail"]) == (dry.status, dry.json["detail"])
            return
        assert comparable(explained.json["decision"]) == comparable(dry.json)
        assert explained.json["decision"]["dry_run"]
        real = own.post("/decisions", request_)
        why = own.get(f"/decisions/{real.json['uuid']}/why")
        # The random draws of a trial and of a decision differ, so an explanation of several instances may, too.
        if request_.get("count", 1) == 1:
            assert explained.json["explanation"] == why.json["explanation"]
        assert explained.json["body"] == {**why.json["body"], "instance_uuids": []}


@settings(max_examples=40)
@given(REQUESTS)
def test_bodies_of_an_explanation_are_requests(request_):
    with roost_api(FLEET) as own:
        explained = own.post("/explanations", request_)
        if explained.status != 200:
            return
        again = own.post("/explanations", explained.json["body"])
        assert comparable(again.json["decision"]) == comparable(explained.json["decision"])
        for change, body in zip(explained.json["explanation"]["changes"], explained.json["change_bodies"], strict=True):
            tried = own.post("/explanations", body)
            assert tried.json["decision"]["outcome"] == "granted", (change["text"], tried.json)


def test_explanation_with_an_outdated_check_index_is_refused():
    with roost_api(FLEET) as own:
        request_ = {"flavor": {"name": "one", "vcpus": 4, "memory_mb": 40}}
        index = own.post("/explanations", request_).json["decision"]["check_index"]
        assert own.post("/explanations", {**request_, "check_index": index}).status == 200
        assert own.post("/decisions", request_).status == 201
        assert own.post("/explanations", {**request_, "check_index": index}).status == 409
        assert len(own.get("/decisions").json["decisions"]) == 1


def comparable(decision):
    """Return a decision without the fields that always vary."""
    picks = [{**pick, "instance_uuid": None} for pick in decision["picks"]]
    return {**decision, **VARYING, "picks": picks}


def body_of(request):
    """Return the request body of a generated request."""
    return {
        "flavor": asdict(request.flavor),
        "count": request.count,
        "instance_uuids": request.instance_uuids,
        "project_id": request.project_id,
        "availability_zone": request.availability_zone,
        "group": request.group,
        "resource_groups": [{name: value for name, value in asdict(each).items() if value} for each in request.groups],
    }


def compare_dry_runs(seed, *, requests, folder):
    """Send each generated request to a real server, as a dry run first and then for real; count the outcomes."""
    workload = generate(Recipe(hosts=40, requests=requests, seed=seed), Options(has_departures=seed % 2 == 0))
    counts = Counter()
    with open_roost(None, folder) as product:
        product.install(workload.fleet)
    with serve(noun="up", folder=folder) as server:
        ask = partial(server.ask, headers={"x-auth-token": "admin"})
        for event in workload.events:
            if isinstance(event.act, Departure):
                for uuid in event.act.instance_uuids:
                    counts["departed"] += ask("DELETE", f"/v1/instances/{uuid}")[0] == 204
                continue
            body = msgspec.to_builtins(body_of(event.act))
            dry, real = (ask("POST", "/v1/decisions", {**body, "dry_run": is_dry})[2] for is_dry in (True, False))
            assert comparable(dry) == comparable(real)
            counts[real["outcome"]] += 1
            if counts.total() % 10 == 0:
                assert ask("POST", f"/v1/decisions/{real['uuid']}/replay", {})[2]["is_same"]
                counts["replayed"] += 1
        assert server.stop() == 0
    return counts


def test_dry_runs_of_a_server_equal_its_decisions(tmp_path):
    counts = compare_dry_runs(2, requests=60, folder=tmp_path)
    assert counts["granted"]
    assert counts["replayed"]


@pytest.mark.soak
def test_ten_thousand_dry_runs_of_a_server_equal_its_decisions(tmp_path_factory, capsys):
    counts = Counter()
    for seed in range(10):
        counts += compare_dry_runs(seed, requests=1_000, folder=tmp_path_factory.mktemp("served"))
    with capsys.disabled():
        print(f"\n{dict(counts)}")
    assert counts["granted"] + counts["refused"] == 10_000
