"""Words and numbers that some database cannot keep, or that no agent can mean: refused with their place."""

import msgspec
import pytest

from roost.api.v1.routes import TABLE
from roost.model.names import uuid_bytes
from roost.simulator.stable_uuids import uuid_of
from tests.api.agents import ORDER, RUN, answer_body, commit_rows, poll_body, registration
from tests.support.agents.http_agents import Players
from tests.support.conductors.work_rows import operation, order
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import asking_own
from tests.support.servers.servers import serve

INSTANCE = uuid_of("guest")
# What has no body.
UNREAD = [(method, path) for path, methods in TABLE.items() for method in methods if methods[method].body is None]
PREPARED = {"uuid": INSTANCE, "node": "host-0", "address": "host-0"}


@pytest.fixture
def own(url):
    """Roost's own API over three hosts, with an agent on one of them, over a database that lasts."""
    with asking_own(fleet(3, vcpus=4), url=url) as found:
        assert found.put("/agents/host-0", registration()).status == 200
        yield found


def refused(answer):
    """Return what a refusal says, and of which place."""
    assert answer.status == 400, answer.json
    return answer.json["field"]


def test_numbers_of_orders_that_nothing_has(own):
    for number in (-1, 2**63, 10**400):
        assert refused(own.post("/orders/poll", poll_body(held=[number]))) == "$.agents[0].held[0]"
        assert refused(
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
def test_a_nul_in_a_query(own, query):
    answer = own.get(f"{query}=a%00b")
    name = query[query.index("?") :]
    assert (refused(answer), answer.json["detail"]) == (name, f"{name}: must not contain NUL")


def test_a_nul_in_a_path_is_of_nothing(own):
    for path in ("/agents/\0", "/hosts/a\0b", "/operations/\0", "/migrations/\0", "/instances/\0", "/nowhere\0"):
        answer = own.get(path)
        assert (answer.status, answer.json["detail"]) == (404, f"there is no /v1{path}")


def test_a_nul_in_what_an_agent_is(own):
    for name in ("driver", "software", "cell"):
        assert refused(own.put("/agents/host-1", registration(**{name: "a\0b"}))) == f"$.{name}"
    assert refused(own.post("/orders/poll", poll_body(host="a\0b"))) == "$.agents[0].host"
    assert own.put("/agents/host-1", registration(driver="é😀")).status == 200


def test_a_line_break_behind_an_identity(own):
    commit_rows(own, operation(1), order(1, host="host-0", action="power_off", body=ORDER))
    assert refused(own.post("/orders/1/answer", {**answer_body(), "run": RUN + "\n"})) == "$.run"
    assert refused(own.put("/agents/host-0", registration(run=RUN + "\n"))) == "$.run"
    assert refused(own.post("/agents/host-0/standings", {"instances": [RUN + "\n"]})) == "$.instances[0]"
    for cursor in ("%0A", "1%0A", RUN + "%0A"):
        assert refused(own.get(f"/instances?cursor={cursor}")) == "?cursor"


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
def test_of_a_body_that_is_wrong_twice_the_first_place_is_told(own, method, path, body, place):
    assert refused(own.ask(method, path, body)) == place


def test_a_query_string_that_nobody_reads_is_refused(own):
    for method, path in [(method, path) for path, methods in TABLE.items() for method in methods]:
        target = path.replace("{id}", INSTANCE).replace("{host}", "host-0")
        assert refused(own.ask(method, f"{target}?nonsense=true")) == "?", (method, path)


def test_a_body_that_nobody_reads_is_refused(own):
    for method, path in UNREAD:
        target = path.replace("{id}", INSTANCE).replace("{host}", "host-0")
        for body in (b'{"nonsense":1}', b'"text"', b"[]"):
            assert refused(own.ask(method, target, body)) == "$", (method, path)
        answer = own.ask(method, target, b"bytes", headers={"content-type": "text/plain"})
        assert (refused(answer), answer.json["detail"][:29]) == ("$", "$: the body is not valid JSON")


def test_a_body_that_says_nothing_where_nobody_reads_one_is_borne(own):
    for body in (b"", b"{}", b"null", b" { } "):
        assert own.ask("POST", f"/instances/{INSTANCE}/stop", body).status == 404
        assert own.ask("GET", "/flavors", body).json == {"flavors": []}
        own.put("/flavors/small", {"vcpus": 1})
        assert own.delete("/flavors/small", body=body, headers={"content-type": "text/plain"}).status == 204


def test_a_drain_that_is_meant_to_be_dry_by_its_query_string_does_not_begin(own):
    assert refused(own.post("/hosts/host-0/drain?dry_run=true", {})) == "?"
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
def test_facts_below_nothing_are_refused_and_none_is_well(own, name):
    answer = own.put("/agents/host-0/nodes/host-0", {name: -1})
    assert (refused(answer), answer.json["detail"]) == (f"$.{name}", f"$.{name}: must be 0 or more")
    assert own.put("/agents/host-0/nodes/host-0", {name: 0, "of_a_newer_agent": 1}).status == 204


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"prepared": {**PREPARED, "uuid": uuid_of("another")}}, "$.prepared.uuid"),
        ({"prepared": {**PREPARED, "uuid": ""}}, "$.prepared.uuid"),
        ({"prepared": {**PREPARED, "address": "x" * 4_097}}, "$.prepared.address"),
        ({"prepared": {**PREPARED, "disk": "\0"}}, "$.prepared.disk"),
        ({"prepared": {"uuid": INSTANCE}}, "$.prepared"),
        ({"found": {"uuid": uuid_of("another"), "node": "n", "operation": "", "state": "running"}}, "$.found.uuid"),
        ({"found": {"uuid": INSTANCE, "node": "n", "operation": "", "state": "merry"}}, "$.found.state"),
        ({"problem": "x" * 2_001}, "$.problem"),
        ({"saved": "x" * 256}, "$.saved"),
        ({"outcome": "perhaps"}, "$.outcome"),
        ({"beside": 1}, "$"),
    ],
)
def test_an_answer_that_is_not_about_its_order(own, told, place):
    commit_rows(
        own, operation(1), order(1, host="host-0", action="prepare", body=ORDER, instance_uuid=uuid_bytes(INSTANCE))
    )
    assert refused(own.post("/orders/1/answer", answer_body(**told))) == place
    assert own.serving.run(lambda current: own.agents.reader(current).order(1)).state == "waiting"
    assert own.post("/orders/1/answer", answer_body(prepared=PREPARED)).json == {"is_wanted": True}


def test_a_guest_whose_identity_is_long_is_refused_in_few_words(own):
    guest = {"uuid": "x" * 100_000, "node": "n", "operation": "", "state": "running"}
    answer = own.put("/agents/host-0", registration(guests=[guest]))
    assert (answer.status, len(answer.body) < 1_000) == (400, True)


def test_a_host_may_have_very_many_guests_that_nobody_knows(own):
    guests = [
        {"uuid": uuid_of("guest", str(number)), "node": "host-0", "operation": "", "state": "running"}
        for number in range(10_000)
    ]
    told = own.put("/agents/host-0", registration(guests=guests))
    assert (told.status, len(told.json["keep"]), told.json["destroy"]) == (200, 10_000, [])
    assert refused(own.put("/agents/host-0", registration(guests=[*guests, guests[0]]))) == "$.guests"


@pytest.mark.parametrize("facts", [{"cpu_allocation_ratio": 1e308}, {"metrics": {"cpu.percent": -1e308}}])
def test_numbers_of_which_no_order_of_hosts_could_be_made(own, facts):
    answer = own.put("/agents/host-0/nodes/host-0", facts)
    assert answer.status == 400
    assert "must be a number up to 3.40282e+38, got" in answer.json["detail"]
    largest = {"vcpus_total": 2**64 - 1, "memory_mb": 2**64 - 1, "local_gb": 2**64 - 1, "cpu_allocation_ratio": 3e38}
    assert own.put("/agents/host-0/nodes/host-0", largest).status == 204
    decided = own.post("/decisions", {"flavor": {"vcpus": 1}, "dry_run": True}).json
    assert (decided["outcome"], decided["picks"][0]["host"]) == ("granted", "host-0")


def test_what_a_driver_said_with_a_nul_is_kept_without_it(own):
    commit_rows(own, operation(1), order(1, host="host-0", action="spawn", body=ORDER))
    assert own.post("/orders/1/answer", answer_body("failed", problem="a\0b")).json == {"is_wanted": True}
    row = own.serving.run(lambda current: own.agents.reader(current).order(1))
    assert msgspec.json.decode(row.answer)["problem"] == "a\N{REPLACEMENT CHARACTER}b"


def test_a_build_ends_whatever_its_driver_said(tmp_path, postgres_url):
    with asking_own(fleet(1, vcpus=4), url=postgres_url):
        pass
    with serve("--database", postgres_url, noun="up", folder=tmp_path) as server:
        players = Players(server, ["host-0"])
        told = players.ask("POST", "/instances", {"flavor": {"name": "small", "vcpus": 1}, "name": "web"})[1]
        asked = {"host": "host-0", "run": uuid_of("run", "host-0"), "fence": 1, "held": []}
        (ordered,) = players.ask("POST", "/orders/poll", {"agents": [asked]})[1]["orders"]
        answer = {"run": asked["run"], "outcome": "aborted", "problem": "no\0network"}
        assert players.ask("POST", f"/orders/{ordered['id']}/answer", answer) == (200, {"is_wanted": True})
        over = players.over(told["operation"])
        assert over["outcome"] == "failed"
        assert "no\N{REPLACEMENT CHARACTER}network" in over["instances"][0]["fault"]
        assert server.said == ""
