"""The allocation ratios of an aggregate's hosts over the /v1 API, in process."""

import pytest

from roost.model.host import HostFacts
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import aggregate, host, merge_fleets, uuid_named
from tests.support.servers.in_process_api import roost_api

RACK = uuid_named("rack")
SMALL = {"flavor": {"name": "small", "vcpus": 6, "memory_mb": 16}}
CPU = {"cpu_allocation_ratio": 2.0}


@pytest.fixture
def rack(own):
    """Return the path of an aggregate with host-0 and host-1 of the three hosts."""
    own.post("/aggregates", {"name": "rack", "uuid": RACK})
    for name in ("host-0", "host-1"):
        assert own.put(f"/aggregates/{RACK}/hosts/{name}").status == 204
    return f"/aggregates/{RACK}"


def capacities(own):
    """Return the VCPU capacity of each host."""
    return {each["host"]: each["resources"]["VCPU"]["capacity"] for each in own.get("/hosts").json["hosts"]}


def test_new_ratio_raises_the_capacity_of_all_hosts_of_an_aggregate(own, rack):
    assert own.post("/decisions", {**SMALL, "strict": False}).json["outcome"] == "refused"
    answer = own.post(f"{rack}/ratios", CPU).json
    vcpu = {"ratio_before": 1.0, "ratio": 2.0, "capacity_before": 4, "capacity": 8, "used": 0}
    assert answer == {
        "hosts": [
            {"host": name, "node": name, "ratios": {"VCPU": vcpu}, "problem": ""} for name in ("host-0", "host-1")
        ],
        "dry_run": False,
        "next": None,
    }
    assert capacities(own) == {"host-0": 8, "host-1": 8, "host-2": 4}
    assert own.post("/decisions", SMALL).json["outcome"] == "granted"
    found = own.get("/changes?kind=host.set_ratios").json["changes"]
    assert sorted(each["object"] for each in found) == ["host-0", "host-1"]
    assert found[0]["details"] == {"aggregate": RACK, "name": "rack", "VCPU": "allocation_ratio 1 -> 2"}


def test_dry_run_changes_nothing(own, rack):
    answer = own.post(f"{rack}/ratios", {**CPU, "dry_run": True}).json
    assert (answer["dry_run"], answer["hosts"][0]["ratios"]["VCPU"]["capacity"]) == (True, 8)
    assert capacities(own) == {"host-0": 4, "host-1": 4, "host-2": 4}
    assert own.get("/changes?kind=host.set_ratios").json["changes"] == []


def test_large_aggregate_is_changed_page_by_page(own, rack):
    first = own.post(f"{rack}/ratios", {**CPU, "limit": 1}).json
    assert ([each["host"] for each in first["hosts"]], capacities(own)["host-1"]) == (["host-0"], 4)
    second = own.post(f"{rack}/ratios", {**CPU, "limit": 1, "cursor": first["next"]}).json
    assert ([each["host"] for each in second["hosts"]], second["next"]) == (["host-1"], None)
    assert capacities(own)["host-1"] == 8


def test_repeated_change_writes_nothing(own, rack):
    own.post(f"{rack}/ratios", CPU)
    again = own.post(f"{rack}/ratios", CPU).json["hosts"][0]
    assert (again["ratios"]["VCPU"]["capacity_before"], again["ratios"]["VCPU"]["capacity"]) == (8, 8)
    assert len(own.get("/changes?kind=host.set_ratios").json["changes"]) == 2


def test_lower_ratio_may_leave_a_capacity_below_its_use(own, rack):
    assert own.post("/decisions", {"flavor": {"vcpus": 4, "memory_mb": 1}, "force_hosts": ["host-0"]}).status == 201
    answer = own.post(f"{rack}/ratios", {"cpu_allocation_ratio": 0.5}).json
    vcpu = answer["hosts"][0]["ratios"]["VCPU"]
    assert (vcpu["capacity"], vcpu["used"], answer["hosts"][0]["problem"]) == (2, 4, "")


def test_class_without_an_inventory_is_named(own, rack):
    fleet_classes = own.get("/hosts/host-0").json["resources"]
    assert "DISK_GB" not in fleet_classes
    answer = own.post(f"{rack}/ratios", {**CPU, "disk_allocation_ratio": 2}).json
    assert answer["hosts"][0]["problem"] == "it has no inventory of DISK_GB"
    assert capacities(own)["host-0"] == 8


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ({"cpu_allocation_ratio": 0}, 400), ({"cpu_allocation_ratio": -1}, 400), ({"x": 1}, 400)],
)
def test_invalid_ratio_is_refused(own, rack, body, status):
    assert own.post(f"{rack}/ratios", body).status == status
    assert own.post(f"/aggregates/{uuid_named('none')}/ratios", CPU).status == 404


def test_ratio_that_the_settings_of_an_agent_fix_stays():
    facts = HostFacts(fixed_ratios={"VCPU": 4.0}), HostFacts(cpu_allocation_ratio=1.0)
    parts = [host(name, VCPU=4, facts=each, aggregates=["rack"]) for name, each in zip("ab", facts, strict=True)]
    with roost_api(merge_fleets(aggregate("rack"), *parts)) as own:
        answer = own.post(f"/aggregates/{RACK}/ratios", CPU).json
        fixed, free = answer["hosts"]
        assert fixed["problem"] == (
            "the settings of its agent fix cpu_allocation_ratio at 4: change or remove that setting"
        )
        assert (fixed["ratios"], free["problem"], capacities(own)) == ({}, "", {"a": 4, "b": 8})
        # The ratio of the facts, which rules read, follows.
        assert own.get("/hosts/b").json["facts"]["cpu_allocation_ratio"] == 2.0


def test_metadata_that_no_enabled_rule_reads_causes_a_warning():
    metadata = {"metadata": {"cpu_allocation_ratio": "8"}}
    with roost_api(fleet(1, vcpus=4)) as own:
        (warning,) = own.post("/aggregates", {"name": "a", **metadata}).json["warnings"]
        assert "aggregate_core would; to change the capacity of the hosts" in warning
        quiet = own.post("/aggregates", {"name": "b", "metadata": {"cpu_weight_multiplier": "2"}}).json
        assert "warnings" not in quiet
