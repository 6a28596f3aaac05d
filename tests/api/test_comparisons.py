"""Comparisons of settings over recorded decisions."""

import pytest

from roost.model.fleet import Departure
from roost.scheduler.comparison.policy_comparison import RecordQuery, Scenario
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import small_request
from tests.support.servers.in_process_api import roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}
HUGE = {"flavor": {"name": "huge", "vcpus": 64, "memory_mb": 16}}
PACK = {"filter_scheduler": {"cpu_weight_multiplier": -1.0, "ram_weight_multiplier": -1.0}}
NOW_AND_PACK = {"sets": [{"name": "now"}, {"name": "pack", "settings": PACK}]}


@pytest.fixture
def own(url):
    with roost_api(fleet(3, vcpus=8), url=url) as client:
        yield client


def decide(own, body=SMALL):
    return own.post("/decisions", body).json


def compare(own, **options):
    response = own.post("/comparisons", NOW_AND_PACK | options)
    assert response.status == 200, response.json
    return response.json


def test_settings_in_force_repeat_the_record_and_others_differ(own):
    decisions = [decide(own) for _ in range(6)]
    decide(own, HUGE)
    before = own.in_thread(lambda roost: roost.utilisation())
    found = compare(own)
    now, pack = found["sets"]
    assert (found["requests"], found["first"]) == (7, decisions[0]["uuid"])
    assert (now["granted"], now["refused"], now["differs"], now["differs_from_recorded"]) == (6, 1, 0, 0)
    assert (pack["granted"], pack["refused"], pack["hosts_used"], now["hosts_used"]) == (6, 1, 2, 3)
    assert found["different"] == pack["differs"] == len(found["decisions"]) > 0
    different = found["decisions"][0]
    recorded = next(each for each in decisions if each["uuid"] == different["uuid"])
    assert different["recorded"]["hosts"] == [recorded["picks"][0]["node"]] == different["results"][0]["hosts"]
    assert different["results"][1]["hosts"] == ["host-0"]
    assert own.in_thread(lambda roost: roost.utilisation()) == before
    assert len(own.get("/decisions").json["decisions"]) == 7


def test_spread_and_shares_of_hosts_are_those_after_the_last_decision(own):
    for _ in range(4):
        decide(own)
    found = compare(own, hosts=True)
    now, pack = ({each["resource_class"]: each for each in one["classes"]}["VCPU"] for one in found["sets"])
    assert found["hosts"] == ["host-0", "host-1", "host-2"]
    assert (now["shares"], pack["shares"]) == ([500, 250, 250], [1000, 0, 0])
    assert (pack["used"], pack["capacity"], pack["least"], pack["median"], pack["most"]) == (8, 24, 0.0, 0.0, 1.0)
    assert pack["deviation"] > now["deviation"]
    assert compare(own)["hosts"] == []


def test_departures_between_decisions_free_their_resources(own):
    first = decide(own)
    for _ in range(11):
        decide(own)
    own.delete(f"/instances/{first['picks'][0]['instance_uuid']}")
    last = decide(own)
    assert last["outcome"] == "granted"
    found = compare(own)
    assert (found["requests"], found["departures"]) == (13, 1)
    assert [each["granted"] for each in found["sets"]] == [13, 13]
    assert found["moments"][-1] == 13
    assert found["sets"][0]["granted_over_time"][-1] == 13


def test_newest_decisions_begin_with_the_state_before_the_oldest_of_them(own):
    decisions = [decide(own) for _ in range(6)]
    found = compare(own, newest=2)
    assert (found["requests"], found["first"]) == (2, decisions[4]["uuid"])
    assert found["sets"][0]["classes"] == compare(own)["sets"][0]["classes"]


def test_without_decisions_there_is_nothing_to_compare(own):
    found = compare(own)
    assert (found["requests"], found["first"], found["decisions"], found["moments"]) == (0, "", [], [])
    assert [each["granted"] for each in found["sets"]] == [0, 0]


def test_moves_are_left_out_with_a_note(own):
    claimed = decide(own)["picks"][0]["instance_uuid"]
    moved = own.post("/decisions", {**SMALL, "move": {"instance_uuid": claimed}})
    assert moved.status == 201, moved.json
    found = compare(own)
    assert found["requests"] == 1
    assert found["notes"] == ["1 decisions about moves are left out: they depend on the place of the instance"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"sets": [{"name": "now"}]}, "$.sets"),
        ({"sets": [{"name": "now"}, {"name": "now"}]}, "$.sets[1].name"),
        ({"sets": [{"name": "a"}, {"name": "b", "settings": {"nothing": {"a": 1}}}]}, "$.sets[1].settings"),
        (
            {"sets": [{"name": "a"}, {"name": "b", "settings": {"filter_scheduler": {"available_filters": ["os"]}}}]},
            "$.sets[1].settings",
        ),
        (NOW_AND_PACK | {"newest": 1001}, "$.newest"),
    ],
)
def test_invalid_bodies_name_their_field(own, body, field):
    response = own.post("/comparisons", body)
    assert (response.status, response.json["field"]) == (400, field), response.json


def test_partial_results_have_a_note(own):
    for _ in range(5):
        decide(own)
    turns = iter([False, False, True])
    settings = own.product.settings
    found = own.in_thread(
        lambda roost: roost.compare(
            {"a": Scenario(settings), "b": Scenario(settings)}, RecordQuery(newest=5), is_late=lambda: next(turns)
        )
    )
    assert (found.requests, found.notes) == (
        2,
        ["the budget ended after 2 of 5 decisions (limit placement.request_timeout_s)"],
    )
    assert [each.granted for each in found.sets] == [2, 2]


def test_record_of_one_commit_is_repeated_exactly(own):
    """Requests, refusals and departures share group commits, and each sees the earlier ones."""
    first = small_request(count=1, instance_uuids=(uuid_of("first"),))
    acts = [first]
    for number in range(80):
        acts.append(small_request(count=1 + number % 3, instance_uuids=()))
        if number % 2:
            acts.append(Departure(instance_uuids=(uuid_of(f"named-{number - 1}"),)))
        acts.append(small_request(count=1, instance_uuids=(uuid_of(f"named-{number}"),)))
    acts.append(Departure(instance_uuids=(uuid_of("first"),)))
    acts.append(small_request(count=1, instance_uuids=()))
    decisions = [each for each in own.in_thread(lambda roost: roost.work(acts)) if each is not None]
    assert {each.outcome for each in decisions} == {"granted", "refused"}
    for newest in (1, 7, 50, len(decisions)):
        found = compare(own, newest=newest)
        assert found["requests"] == newest
        assert found["sets"][0]["differs_from_recorded"] == 0, newest


def test_sets_differ_in_their_fleets(own):
    for _ in range(14):
        decide(own)
    sets = [
        {"name": "now"},
        {"name": "more", "add_hosts": [{"like": "host-0", "count": 1}]},
        {"name": "less", "without_hosts": ["host-2"], "without_racks": []},
    ]
    found = own.post("/comparisons", {"sets": sets}).json
    now, more, less = found["sets"]
    assert found["recorded"] == {"granted": 12, "refused": 2, "instances": 12}
    assert [each["hosts"] for each in (now, more, less)] == [3, 4, 2]
    assert [each["granted"] for each in (now, more, less)] == [12, 14, 8]
    assert now["differs_from_recorded"] == 0
    # The last two of 14 fit on four hosts only, and the four before them on three.
    assert found["different_outcomes"] == 6
    outcomes = [{each["outcome"] for each in row["results"]} for row in found["decisions"]]
    assert outcomes.count({"granted", "refused"}) == 6


def test_consumers_of_removed_hosts_are_gone_from_the_start(own):
    for _ in range(6):
        decide(own)
    sets = [{"name": "now"}, {"name": "less", "without_hosts": ["host-0"]}]
    found = own.post("/comparisons", {"sets": sets, "newest": 2}).json
    assert [each["lost"] for each in found["sets"]] == [0, 2]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"without_racks": ["r7"]}, "$.sets[1].without_racks[0]"),
        ({"without_zones": ["mars"]}, "$.sets[1].without_zones[0]"),
        ({"add_hosts": [{"like": "host-9", "count": 1}]}, "$.sets[1].add_hosts[0].like"),
        ({"add_hosts": [{"like": "host-0", "count": 9_999}] * 2}, "$.sets[1].add_hosts"),
    ],
)
def test_unknown_parts_of_a_changed_fleet_name_their_field(own, change, field):
    response = own.post("/comparisons", {"sets": [{"name": "now"}, {"name": "other", **change}]})
    assert (response.status, response.json["field"]) == (400, field), response.json
