"""Agents in the /v1 API: registration, reports, polls, replies and listings."""

import msgspec
import pytest

from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.orders import Power
from roost.model.work.standing import STANDINGS_MAX
from roost.simulator.stable_uuids import uuid_of
from tests.api.agent_tokens import AGENT, OTHER, open_apis
from tests.api.agents import NEXT_RUN, ORDER, RUN, answer_body, commit_rows, poll_body, registration
from tests.support.conductors.work_rows import migration, operation, order, status


def test_an_agent_registers_and_is_shown(own):
    response = own.put("/agents/Host-0", registration(nodes=[{"node": "host-0", "uuid": uuid_of("host", "0")}]))
    assert response.status == 200
    assert response.json == {
        "fence": 1,
        "is_ready": True,
        "keep": [],
        "hold": [],
        "destroy": [],
        "is_disabled": False,
        "down_after_s": 60.0,
    }
    shown = own.get("/agents/host-0").json
    assert {name: shown[name] for name in ("host", "state", "up", "driver", "software", "fence", "nodes", "run")} == {
        "host": "Host-0",
        "state": "ready",
        "up": True,
        "driver": "fake",
        "software": "roost 1",
        "fence": 1,
        "nodes": ["host-0"],
        "run": RUN,
    }
    assert own.get("/agents").json == {"agents": [shown], "next": None}
    assert own.get("/agents/host-9").status == 404


def test_agents_are_listed_in_pages(own):
    for host in ("c", "a", "b"):
        own.put(f"/agents/{host}", registration())
    first = own.get("/agents?limit=2").json
    assert [each["host"] for each in first["agents"]] == ["a", "b"]
    rest = own.get(f"/agents?limit=2&cursor={first['next']}").json
    assert ([each["host"] for each in rest["agents"]], rest["next"]) == (["c"], None)


def test_standings_report_the_state_of_instances(own):
    states = {
        1: {"status": "DELETED"},
        2: {"status": "ACTIVE", "host": "host-1"},
        3: {"status": "ACTIVE", "host": "host-1", "operation_id": 7},
        4: {"status": "BUILD", "task": "build"},
        5: {"status": "VERIFY_RESIZE", "host": "host-1", "migration_uuid": uuid_bytes(uuid_of("move"))},
        6: {"status": "ACTIVE", "host": "host-1", "migration_uuid": uuid_bytes(uuid_of("old move"))},
    }
    rows = {number: status(number, **{"operation_id": 0, "task": "", **values}) for number, values in states.items()}
    moves = [
        migration(number, uuid=rows[of].migration_uuid, instance_uuid=rows[of].uuid, status=name)
        for number, of, name in ((1, 5, "finished"), (2, 6, "confirmed"))
    ]
    commit_rows(own, *rows.values(), *moves)
    uuids = {number: uuid_text(row.uuid) for number, row in rows.items()}
    response = own.post("/agents/host-0/standings", {"instances": [*uuids.values(), uuid_of("stranger")]})
    standings = response.json["instances"]
    assert standings.keys() == {*uuids.values()}
    assert [tuple(standings[uuids[number]].values()) for number in states] == [
        (True, rows[1].host, False),
        (False, "host-1", False),
        (False, "host-1", True),
        (False, rows[4].host, True),
        (False, "host-1", True),
        (False, "host-1", False),
    ]
    assert own.post("/agents/host-0/standings", {}).json == {"instances": {}}
    response = own.post("/agents/host-0/standings", {"instances": ["one"]})
    assert (response.status, response.json["field"]) == (400, "$.instances[0]")


def test_agent_token_may_read_standings_of_instances_on_any_host():
    states = [("DELETED", ""), ("ACTIVE", "host-1"), ("SHELVED_OFFLOADED", "")]
    rows = [
        status(number, status=name, host=host, operation_id=0, task="")
        for number, (name, host) in enumerate(states, start=1)
    ]
    body = {"instances": [uuid_text(row.uuid) for row in rows]}
    with open_apis() as apis:
        commit_rows(apis.own, *rows)
        standings = apis.ask_v1(AGENT, "POST", "/agents/host-0/standings", body).json["instances"]
        assert [(standings[uuid]["is_deleted"], standings[uuid]["host"]) for uuid in body["instances"]] == [
            (True, ""),
            (False, "host-1"),
            (False, ""),
        ]
        refused = apis.ask_v1(OTHER, "POST", "/agents/host-0/standings", body)
        assert (refused.status, refused.json["detail"]) == (403, "this token may only touch host host-1, not host-0")
        many = {"instances": [uuid_of("many", str(number)) for number in range(STANDINGS_MAX + 1)]}
        assert apis.ask_v1(AGENT, "POST", "/agents/host-0/standings", many).status == 400


def test_superseded_run_cannot_report_a_node(own):
    nodes = [{"node": "host-0", "uuid": uuid_of("host", "0")}]
    own.put("/agents/host-0", registration(nodes=nodes))
    assert own.put(f"/agents/host-0/nodes/host-0?run={RUN}", {"host_ip": "10.0.0.1"}).status == 204
    own.put("/agents/host-0", registration(NEXT_RUN, nodes=nodes))
    response = own.put(f"/agents/host-0/nodes/host-0?run={RUN}", {"host_ip": "10.0.0.9"})
    assert (response.status, response.json["detail"]) == (
        409,
        "the host host-0 was registered by another run of its agent",
    )
    assert own.put(f"/agents/host-0/nodes/host-0?run={NEXT_RUN}", {"host_ip": "10.0.0.2"}).status == 204
    assert own.get("/hosts/host-0").json["facts"]["host_ip"] == "10.0.0.2"
    response = own.put("/agents/host-0/nodes/host-0?run=x", {})
    assert (response.status, response.json["detail"]) == (400, "?run: 'x' is not a valid UUID")


def test_node_of_another_host_or_provider_is_refused(own):
    def register(host, node, uuid):
        response = own.put(f"/agents/{host}", registration(nodes=[{"node": node, "uuid": uuid}]))
        return response.status, response.json.get("detail")

    root, stranger = uuid_of("host", "0"), uuid_of("stranger")
    assert register("other", "host-0", root) == (409, "the node host-0 belongs to the host host-0, not to other")
    text = (
        f"the provider of the node host-0 is {root}, and not {stranger} as host-0 reports; "
        "start the agent with its old journal; if this is lost, run `roost agent adopt host-0` first; if host-0 is a "
        "different machine, rename it"
    )
    assert register("host-0", "host-0", stranger) == (409, text)
    assert register("host-0", "new", stranger)[0] == 200


def test_second_agent_for_a_live_host_is_refused(own):
    assert (
        own.put("/agents/host-0", registration(nodes=[{"node": "host-0", "uuid": uuid_of("host", "0")}])).status == 200
    )
    response = own.put("/agents/host-0", registration(NEXT_RUN, nodes=[{"node": "x", "uuid": uuid_of("x")}]))
    assert response.status == 409
    assert response.json["detail"] == "the host host-0 is registered by another agent, which reports host-0"


def test_report_changes_agent_facts_but_not_operator_settings(own):
    own.put("/agents/host-0", registration())
    own.ask("PATCH", "/services/host-0", {"disabled": True, "disabled_reason": "dusty"})
    report = {
        "hypervisor_type": "fake",
        "metrics": {"cpu.percent": 5.0},
        "is_disabled": False,
        "cell": "x",
        "failed_builds": 9,
        "reported_at_s": 1.0,
        "is_forced_down": True,
        "disabled_at_s": 1.0,
        "disabled_by": "agent",
    }
    before = own.in_thread(lambda roost: roost.state.position)
    assert own.put("/agents/host-0/nodes/host-0", report).status == 204
    facts = own.get("/hosts/host-0").json["facts"]
    assert facts.pop("disabled_at_s") > 1.0
    assert facts.pop("disabled_by") == "admin"
    assert facts == {
        "hypervisor_type": "fake",
        "metrics": {"cpu.percent": 5.0},
        "is_disabled": True,
        "disabled_reason": "dusty",
    }
    after = own.in_thread(lambda roost: roost.state.position)
    assert own.put("/agents/host-0/nodes/host-0", report).status == 204
    assert (before < after, own.in_thread(lambda roost: roost.state.position)) == (True, after)
    assert own.put("/agents/host-0", registration()).json["is_disabled"]
    assert own.post("/orders/poll", poll_body()).json["disabled"] == ["host-0"]


@pytest.mark.parametrize("state", ["ready", "arriving"])
def test_root_provider_becomes_a_node_and_is_up_once_its_host_is_clean(state):
    with open_apis() as apis:
        own = apis.own
        response = own.put("/agents/new/nodes/new", {})
        assert (response.status, response.json["detail"]) == (404, "no such agent: new")
        guests = []
        if state == "arriving":
            commit_rows(own, status(1, uuid=uuid_bytes(uuid_of("gone")), status="DELETED"))
            guests = [{"uuid": uuid_of("gone"), "node": "new", "operation": "", "state": "running"}]
        agent = own.put("/agents/new", registration(cell="east", guests=guests)).json
        assert (agent["is_ready"], agent["destroy"]) == (state == "ready", [each["uuid"] for each in guests])
        response = own.put("/agents/new/nodes/new", {})
        assert (response.status, response.json["detail"]) == (
            409,
            "there is no provider new: report its inventory first",
        )
        apis.admin("POST", "/resource_providers", {"name": "new", "uuid": uuid_of("new")})
        for _ in range(2):
            assert own.put("/agents/new/nodes/new", {"host_ip": "10.0.0.1"}).status == 204
        shown = own.get("/hosts/new").json
        assert (shown["host"], shown["up"], shown["facts"]["cell"]) == ("new", state == "ready", "east")
        assert shown["facts"]["host_ip"] == "10.0.0.1"
        response = own.put("/agents/new/nodes/in-0", {})
        assert response.json["detail"] == "the provider in-0 has a parent, so it cannot be a node of new"


def test_order_is_delivered_until_held_and_answered_only_once(own):
    own.put("/agents/host-0", registration())
    commit_rows(
        own, operation(1), order(1, host="host-0", action="power_off", body=ORDER, instance_uuid=uuid_bytes(RUN))
    )
    for _ in range(2):
        (delivered,) = own.post("/orders/poll", poll_body()).json["orders"]
        assert delivered == {
            "id": 1,
            "host": "host-0",
            "operation": uuid_of("operation"),
            "number": 1,
            "instance": RUN,
            "turn": 0,
            "act": {"action": "power", "is_on": False},
            "limit_s": 60.0,
        }
    assert msgspec.convert(delivered["act"], Power) == Power(is_on=False)
    assert own.post("/orders/poll", poll_body(held=[1])).json["orders"] == []
    for outcome in ("ok", "failed"):
        assert own.post("/orders/1/answer", answer_body(outcome)).json == {"is_wanted": True}
    reader = own.agents.reader
    row = own.serving.run(lambda current: reader(current).order(1))
    assert (row.state, msgspec.json.decode(row.answer)) == ("answered", {"outcome": "ok"})
    assert own.post("/orders/poll", poll_body(held=[1])).json["settled"] == [1]


def test_withdrawn_order_is_reported_and_its_result_is_unwanted(own):
    own.put("/agents/host-0", registration())
    commit_rows(own, operation(1), order(1, host="host-0", state="withdrawn"))
    assert own.post("/orders/poll", poll_body(held=[1])).json["withdrawn"] == [1]
    assert own.post("/orders/1/answer", answer_body()).json == {"is_wanted": False}
    for number in ("7", "x", "9" * 30):
        assert own.post(f"/orders/{number}/answer", answer_body()).status == 404


def test_unknown_or_superseded_agents_are_refused(own):
    assert own.post("/orders/poll", poll_body()).json["unknown"] == ["host-0"]
    own.put("/agents/host-0", registration())
    own.put("/agents/host-0", registration(NEXT_RUN))
    assert own.post("/orders/poll", poll_body()).json["superseded"] == ["host-0"]
    commit_rows(own, operation(1), order(1, host="host-0", action="destroy", body=ORDER))
    response = own.post("/orders/1/answer", answer_body())
    assert (response.status, response.json["detail"]) == (
        409,
        "the host host-0 was registered by another run of its agent",
    )
    assert own.delete(f"/agents/host-0?run={RUN}").status == 409
    assert own.delete("/agents/host-0?run=x").json["field"] == "?run"
    assert own.delete("/agents/host-0").status == 204
    assert own.get("/agents/host-0").json["state"] == "gone"
    assert own.get("/services").json["services"][0]["up"] is False


def test_last_report_of_a_service_is_the_last_contact_of_its_agent(own):
    never = {each["host"]: each["reported_at_s"] for each in own.get("/services").json["services"]}
    assert never["host-0"] is None
    own.put("/agents/host-0", registration())
    heard_at_s = own.get("/agents/host-0").json["heard_at_s"]
    after = {each["host"]: each["reported_at_s"] for each in own.get("/services").json["services"]}
    assert after == never | {"host-0": heard_at_s}
    assert own.ask("PATCH", "/services/host-0", {"disabled": True}).json["reported_at_s"] == heard_at_s


def test_poll_renews_the_last_contact_of_the_host(own):
    own.put("/agents/host-0", registration())
    own.put("/agents/host-1", registration())
    own.post("/orders/poll", poll_body())
    own.post("/orders/poll", poll_body(host="host-1", fence=9))
    before = {each["host"]: each["heard_at_s"] for each in own.get("/agents").json["agents"]}
    own.agents.store_heartbeats()
    own.agents.store_heartbeats()
    after = {each["host"]: each["heard_at_s"] for each in own.get("/agents").json["agents"]}
    assert after["host-0"] > before["host-0"]
    assert after["host-1"] == before["host-1"]


@pytest.mark.parametrize(
    ("url", "body", "field"),
    [
        ("/agents/host-0", registration(run="x"), "$.run"),
        ("/agents/host-0", {}, "$"),
        ("/agents/host-0", registration(nodes=[{"node": "", "uuid": RUN}]), "$.nodes[...].node"),
        ("/agents/host-0", registration(beside=1), "$"),
        ("/agents/host-0/nodes/host-0", {"num_io_ops": "many"}, "$.num_io_ops"),
    ],
)
def test_invalid_agent_bodies_name_the_field(own, url, body, field):
    response = own.put(url, body)
    assert response.status == 400
    assert response.json["field"].replace("[0]", "[...]") == field


def test_invalid_polls_are_refused(own):
    twice = poll_body()
    twice["agents"] *= 2
    assert own.post("/orders/poll", twice).json["detail"] == "$.agents: a host is given twice"
    assert own.post("/orders/poll", poll_body(wait_s=26)).json["field"] == "$.wait_s"
    assert own.post("/orders/poll", {"agents": []}).json["field"] == "$.agents"
    assert own.put("/agents/two words", registration()).status == 400
