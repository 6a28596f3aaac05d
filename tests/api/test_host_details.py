"""The provider tree and the events of a host in the /v1 API, and pauses of its drain."""

import msgspec
import pytest

from roost.model.fleet import Fleet
from roost.model.host import HostSpec
from roost.model.names import uuid_text
from roost.model.provider import Inventory, ProviderSpec
from roost.model.work.change_memory import Drain
from roost.simulator.stable_uuids import uuid_of
from tests.api.agents import commit_rows
from tests.support.conductors.work_rows import event, operation, status
from tests.support.servers.in_process_api import roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}
ROOT, CELL, CARD = (uuid_of("provider", name) for name in ("root", "cell", "card"))
TREE = Fleet(
    providers=[
        ProviderSpec(
            uuid=ROOT,
            name="node-0",
            inventories={"MEMORY_MB": Inventory(total=1024, reserved=24), "VCPU": Inventory(total=4)},
        ),
        ProviderSpec(uuid=CELL, name="node-0_numa_0", parent_uuid=ROOT, traits=("HW_NUMA_ROOT",)),
        ProviderSpec(
            uuid=CARD, name="node-0_card", parent_uuid=CELL, inventories={"VGPU": Inventory(total=2, step_size=2)}
        ),
    ],
    hosts=[HostSpec(provider_uuid=ROOT, host="Host-0", node="node-0")],
)


@pytest.fixture
def own():
    with roost_api(TREE) as own:
        yield own


def test_tree_has_each_provider_after_its_parent_with_inventories_and_holders(own):
    decision = own.post("/decisions", SMALL).json
    tree = own.get("/hosts/node-0/providers").json
    assert (tree["host"], tree["node"], tree["provider_count"]) == ("Host-0", "node-0", 3)
    assert [(each["name"], each["parent"]) for each in tree["providers"]] == [
        ("node-0", None),
        ("node-0_numa_0", ROOT),
        ("node-0_card", CELL),
    ]
    root, cell, card = tree["providers"]
    assert cell["traits"] == ["HW_NUMA_ROOT"]
    memory = root["inventories"]["MEMORY_MB"]
    assert {name: memory[name] for name in ("total", "reserved", "capacity", "used")} == {
        "total": 1024,
        "reserved": 24,
        "capacity": 1000,
        "used": 16,
    }
    assert card["inventories"]["VGPU"]["step_size"] == 2
    uuid = decision["picks"][0]["instance_uuid"]
    assert (root["holder_count"], card["holder_count"], card["holders"]) == (1, 0, [])
    assert root["holders"] == [
        {
            "consumer": uuid,
            "kind": "instance",
            "instance": uuid,
            "name": "",
            "project_id": decision["project_id"],
            "resources": {"MEMORY_MB": 16, "VCPU": 2},
        }
    ]


def test_holders_are_bounded_and_counted(own):
    own.post("/decisions", {**SMALL, "count": 2})
    (root, *_) = own.get("/hosts/host-0/providers?holders=1").json["providers"]
    assert (root["holder_count"], len(root["holders"])) == (2, 1)
    assert own.get("/hosts/host-9/providers").status == 404
    assert own.get("/hosts/host-0/providers?holders=-1").status == 400


def test_events_are_changes_of_the_host_and_lines_that_name_it_or_its_instances(own):
    here, elsewhere = (
        status(1, host="Host-0", node="node-0", status="ACTIVE", task=""),
        status(2, host="host-9", node="host-9", status="ACTIVE", task=""),
    )
    commit_rows(
        own,
        operation(1, kind="stop", outcome="done", instance_uuid=here.uuid),
        here,
        elsewhere,
        event(1, kind="spawn.built", instance_uuid=elsewhere.uuid, body=b'{"host":"host-9"}'),
        event(2, kind="stop.done", instance_uuid=here.uuid, operation_id=1),
        event(3, kind="live_migrate.done", instance_uuid=elsewhere.uuid, body=b'{"host":"host-9","source":"host-0"}'),
        event(4, kind="spawn.failed", body=b'{"problem":"not on host-0"}'),
    )
    assert own.ask("PATCH", "/services/host-0", {"disabled": True, "disabled_reason": "fan"}).status == 200
    listed = own.get("/hosts/host-0/events").json
    assert listed["since_s"] == 0.0
    change, *lines = listed["events"]
    assert (change["kind"], change["is_change"], change["details"]["reason"]) == ("host.disable", True, "fan")
    assert [(each["kind"], each["instance_name"], each["operation"]) for each in lines] == [
        ("live_migrate.done", "i2", None),
        ("stop.done", "i1", uuid_text(operation(1).uuid)),
    ]
    assert [each["kind"] for each in own.get("/hosts/host-0/events?limit=1").json["events"]] == ["host.disable"]
    before = own.get("/hosts/host-0/events?before=1003").json["events"]
    assert [each["kind"] for each in before] == ["stop.done"]


@pytest.mark.parametrize("before", ["nan", "inf", "-inf", "1e400", "x"])
def test_time_of_events_is_a_finite_number(own, before):
    refused = own.get(f"/hosts/host-0/events?before={before}")
    assert (refused.status, refused.json["field"]) == (400, "?before")


def drain_row(**changes):
    body = Drain(host="Host-0", instances=("a", "b", "c"), at_once=1, begun=2, going=("b",), stayed=1)
    return operation(1, kind="drain", step="move", body=msgspec.msgpack.encode(body), **changes)


def test_drain_is_paused_and_resumed_and_shows_its_progress(own):
    commit_rows(own, drain_row())
    path = f"/operations/{uuid_text(operation(1).uuid)}"
    progress = {
        "host": "Host-0",
        "at_once": 1,
        "is_paused": False,
        "instances": 3,
        "left": 1,
        "moving": 1,
        "stayed": 1,
    }
    (listed,) = own.get("/operations?outcome=open").json["operations"]
    assert listed["drain"] == progress
    for act, is_paused in (("pause", True), ("pause", True), ("resume", False)):
        assert own.post(f"{path}/{act}").status == 202
        (listed,) = own.get("/operations?outcome=open").json["operations"]
        assert listed["drain"] == {**progress, "is_paused": is_paused}
    assert [each["kind"] for each in own.get("/changes?kind=operation").json["changes"]] == [
        "operation.resume",
        "operation.pause",
    ]
    assert own.post("/operations/none/pause").status == 404


def test_recent_operations_are_those_that_ended_last(own):
    commit_rows(
        own,
        *(operation(each, kind="stop", outcome="done", changed_at_s=1010.0 - each) for each in (1, 2)),
        operation(3, kind="start", outcome="failed", changed_at_s=2000.0),
        operation(4, kind="start"),
    )
    uuids = {uuid_text(operation(each).uuid): each for each in (1, 2, 3, 4)}

    def numbers(query):
        page = own.get(f"/operations?recent=true{query}").json
        assert page["next"] is None
        return [uuids[each["uuid"]] for each in page["operations"]]

    assert numbers("") == [3, 1, 2]
    assert numbers("&limit=2") == [3, 1]
    assert numbers("&outcome=done") == [1, 2]
    assert numbers("&kind=start") == [3]
    assert own.get("/operations?recent=true&outcome=open").json["field"] == "?recent"
