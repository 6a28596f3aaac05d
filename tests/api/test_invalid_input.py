"""Strings and numbers that a database or an agent cannot handle are refused, with the name of the field."""

import msgspec
import pytest

from roost.api.v1.routes import TABLE
from roost.model.names import uuid_bytes
from roost.simulator.stable_uuids import uuid_of
from tests.api.agents import ORDER, RUN, answer_body, commit_rows, poll_body, registration
from tests.support.agents.http_agents import AgentPlayers
from tests.support.conductors.work_rows import operation, order
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve

INSTANCE = uuid_of("guest")
# Routes without a body.
WITHOUT_BODY = [(method, path) for path, methods in TABLE.items() for method in methods if methods[method].body is None]
PREPARATION = {"uuid": INSTANCE, "node": "host-0", "address": "host-0"}


@pytest.fixture
def own(url):
    """The /v1 API over three hosts, with an agent on one of them, over a persistent database."""
    with roost_api(fleet(3, vcpus=4), url=url) as client:
        assert client.put("/agents/host-0", registration()).status == 200
        yield client


def refused_field(answer):
    """Check that a request was refused; return the field that the error names."""
    assert answer.status == 400, answer.json
    return answer.json["field"]


def test_order_numbers_out_of_range_are_refused(own):
    for number in (-1, 2**63, 10**400):
        assert refused_field(own.post("/orders/poll", poll_body(held=[number]))) == "$.agents[0].held[0]"
        assert refused_field(
            own.post("/orders/poll", {**poll_body(), "agents": [{**poll_body()["agents"][0], "fence": number}]})
        )
    assert own.post("/orders/poll", poll_body(held=[2**63 - 1])).json["settled"] == [2**63 - 1]


@pytest.mark.parametrize(
    "query",
    [
        "/instances?host",
        "/instances?project",
        "/instances?name",
        "/migrations?source",
        "/migrations?target",
        "/agents?cursor",
    ],
)
def test_nul_in_a_query_is_refused(own, query):
    answer = own.get(f"{query}=a%00b")
    name = query[query.index("?") :]
    assert (refused_field(answer), answer.json["detail"]) == (name, f"{name}: must not contain NUL")


def test_nul_in_a_path_is_not_found(own):
    for path in ("/agents/\0", "/hosts/a\0b", "/operations/\0", "/migrations/\0", "/instances/\0", "/nowhere\0"):
        answer = own.get(path)
        assert (answer.status, answer.json["detail"]) == (404, f"there is no /v1{path}")


def test_nul_in_agent_fields_is_refused(own):
    for name in ("driver", "software", "cell"):
        assert refused_field(own.put("/agents/host-1", registration(**{name: "a\0b"}))) == f"$.{name}"
    assert refused_field(own.post("/orders/poll", poll_body(host="a\0b"))) == "$.agents[0].host"
    assert own.put("/agents/host-1", registration(driver="é😀")).status == 200


def test_line_break_after_an_id_is_refused(own):
    commit_rows(own, operation(1), order(1, host="host-0", action="power_off", body=ORDER))
    assert refused_field(own.post("/orders/1/answer", {**answer_body(), "run": RUN + "\n"})) == "$.run"
    assert refused_field(own.put("/agents/host-0", registration(run=RUN + "\n"))) == "$.run"
    assert refused_field(own.post("/agents/host-0/standings", {"instances": [RUN + "\n"]})) == "$.instances[0]"
    for cursor in ("%0A", "1%0A", RUN + "%0A"):
        assert refused_field(own.get(f"/instances?cursor={cursor}")) == "?cursor"


@pytest.mark.parametrize(
    ("method", "path", "body", "place"),
    [
        ("POST", "/decisions", b'{"hints":{"a":5}', "$.hints[...]"),
        ("POST", "/decisions", b'{"hints":{"a":5}}', "$.hints['a']"),
        ("POST", "/instances", b'{"flavor":{"extra_specs":{"a":1}', "$.flavor.extra_specs[...]"),
        ("POST", "/instances", b'{"flavor":{"extra_specs":{"a":1}}}', "$.flavor.extra_specs['a']"),
        ("PUT", "/agents/h1/nodes/h1", b'{"metrics":{"a":"b"}', "$.metrics[...]"),
        ("POST", "/decisions", b'{"hints":{"a":1},"hints":{}}', "$.hints[...]"),
        ("POST", "/capacity", b'{"request":{"hints":{"a":5},"flavor":{"vcpus":1e400}}}', "$.request.hints[...]"),
        ("POST", "/decisions", b'{"hints":{"a":' + b"[" * 1_000 + b"]" * 1_000 + b"}}", "$.hints[...][0]"),
    ],
)
def test_first_of_two_body_errors_is_reported(own, method, path, body, place):
    assert refused_field(own.ask(method, path, body)) == place


def test_unknown_query_parameters_are_refused_by_all_routes(own):
    for method, path in [(method, path) for path, methods in TABLE.items() for method in methods]:
        target = path.replace("{id}", INSTANCE).replace("{host}", "host-0")
        assert refused_field(own.ask(method, f"{target}?nonsense=true")) == "?", (method, path)


def test_unexpected_bodies_are_refused_by_routes_without_a_body(own):
    for method, path in WITHOUT_BODY:
        target = path.replace("{id}", INSTANCE).replace("{host}", "host-0")
        for body in (b'{"nonsense":1}', b'"text"', b"[]"):
            assert refused_field(own.ask(method, target, body)) == "$", (method, path)
        answer = own.ask(method, target, b"bytes", headers={"content-type": "text/plain"})
        assert (refused_field(answer), answer.json["detail"][:29]) == ("$", "$: the body is not valid JSON")


def test_empty_bodies_are_accepted_by_routes_without_a_body(own):
    for body in (b"", b"{}", b"null", b" { } "):
        assert own.ask("POST", f"/instances/{INSTANCE}/stop", body).status == 404
        assert own.ask("GET", "/flavors", body).json == {"flavors": []}
        own.put("/flavors/small", {"vcpus": 1})
        assert own.delete("/flavors/small", body=body, headers={"content-type": "text/plain"}).status == 204


def test_dry_run_in_the_query_of_a_drain_is_refused(own):
    assert refused_field(own.post("/hosts/host-0/drain?dry_run=true", {})) == "?"
    assert own.get("/hosts/host-0").json["disabled"] is False


@pytest.mark.parametrize(
    "name",
    [
        "vcpus_total",
        "memory_mb",
        "local_gb",
        "cpu_allocation_ratio",
        "hypervisor_version",
        "num_io_ops",
        "failed_builds",
    ],
)
def test_negative_facts_are_refused_and_zero_is_accepted(own, name):
    answer = own.put("/agents/host-0/nodes/host-0", {name: -1})
    assert (refused_field(answer), answer.json["detail"]) == (f"$.{name}", f"$.{name}: must be 0 or more")
    assert own.put("/agents/host-0/nodes/host-0", {name: 0, "of_a_newer_agent": 1}).status == 204


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"prepared": {**PREPARATION, "uuid": uuid_of("another")}}, "$.prepared.uuid"),
        ({"prepared": {**PREPARATION, "uuid": ""}}, "$.prepared.uuid"),
        ({"prepared": {**PREPARATION, "address": "x" * 4_097}}, "$.prepared.address"),
        ({"prepared": {**PREPARATION, "disk": "\0"}}, "$.prepared.disk"),
        ({"prepared": {"uuid": INSTANCE}}, "$.prepared"),
        ({"found": {"uuid": uuid_of("another"), "node": "n", "operation": "", "state": "running"}}, "$.found.uuid"),
        ({"found": {"uuid": INSTANCE, "node": "n", "operation": "", "state": "merry"}}, "$.found.state"),
        ({"problem": "x" * 2_001}, "$.problem"),
        ({"saved": "x" * 256}, "$.saved"),
        ({"outcome": "perhaps"}, "$.outcome"),
        ({"beside": 1}, "$"),
    ],
)
def test_answer_that_does_not_match_its_order_is_refused(own, fields, place):
    commit_rows(
        own, operation(1), order(1, host="host-0", action="prepare", body=ORDER, instance_uuid=uuid_bytes(INSTANCE))
    )
    assert refused_field(own.post("/orders/1/answer", answer_body(**fields))) == place
    assert own.serving.run(lambda current: own.agents.reader(current).order(1)).state == "waiting"
    assert own.post("/orders/1/answer", answer_body(prepared=PREPARATION)).json == {"is_wanted": True}


def test_error_for_a_long_guest_id_is_short(own):
    guest = {"uuid": "x" * 100_000, "node": "n", "operation": "", "state": "running"}
    answer = own.put("/agents/host-0", registration(guests=[guest]))
    assert (answer.status, len(answer.body) < 1_000) == (400, True)


def test_registration_with_ten_thousand_unknown_guests(own):
    guests = [
        {"uuid": uuid_of("guest", str(number)), "node": "host-0", "operation": "", "state": "running"}
        for number in range(10_000)
    ]
    accepted = own.put("/agents/host-0", registration(guests=guests))
    assert (accepted.status, len(accepted.json["keep"]), accepted.json["destroy"]) == (200, 10_000, [])
    assert refused_field(own.put("/agents/host-0", registration(guests=[*guests, guests[0]]))) == "$.guests"


@pytest.mark.parametrize("facts", [{"cpu_allocation_ratio": 1e308}, {"metrics": {"cpu.percent": -1e308}}])
def test_facts_too_large_to_rank_are_refused(own, facts):
    answer = own.put("/agents/host-0/nodes/host-0", facts)
    assert answer.status == 400
    assert "must be a number up to 3.40282e+38, got" in answer.json["detail"]
    largest = {"vcpus_total": 2**64 - 1, "memory_mb": 2**64 - 1, "local_gb": 2**64 - 1, "cpu_allocation_ratio": 3e38}
    assert own.put("/agents/host-0/nodes/host-0", largest).status == 204
    decision = own.post("/decisions", {"flavor": {"vcpus": 1}, "dry_run": True}).json
    assert (decision["outcome"], decision["picks"][0]["host"]) == ("granted", "host-0")


def test_nul_in_a_driver_message_is_replaced(own):
    commit_rows(own, operation(1), order(1, host="host-0", action="spawn", body=ORDER))
    assert own.post("/orders/1/answer", answer_body("failed", problem="a\0b")).json == {"is_wanted": True}
    row = own.serving.run(lambda current: own.agents.reader(current).order(1))
    assert msgspec.json.decode(row.answer)["problem"] == "a\N{REPLACEMENT CHARACTER}b"


def test_build_ends_despite_a_nul_in_the_driver_message(tmp_path, postgres_url):
    with roost_api(fleet(1, vcpus=4), url=postgres_url):
        pass
    with serve("--database", postgres_url, noun="up", folder=tmp_path) as server:
        players = AgentPlayers(server, ["host-0"])
        creation = players.ask("POST", "/instances", {"flavor": {"name": "small", "vcpus": 1}, "name": "web"})[1]
        agent = {"host": "host-0", "run": uuid_of("run", "host-0"), "fence": 1, "held": []}
        (order_body,) = players.ask("POST", "/orders/poll", {"agents": [agent]})[1]["orders"]
        answer = {"run": agent["run"], "outcome": "aborted", "problem": "no\0network"}
        assert players.ask("POST", f"/orders/{order_body['id']}/answer", answer) == (200, {"is_wanted": True})
        operation_result = players.over(creation["operation"])
        assert operation_result["outcome"] == "failed"
        assert "no\N{REPLACEMENT CHARACTER}network" in operation_result["instances"][0]["fault"]
        assert server.problems == []
