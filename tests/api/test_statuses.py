"""Whatever is asked of an instance in whatever status: accepted, or refused with a sentence that names the cause."""

import pytest

from roost.api.v1.routes import TABLE
from roost.model.names import uuid_bytes
from roost.model.work.operation import STATUSES, TASKS, USER_OPERATIONS, may_begin
from roost.simulator.stable_uuids import uuid_of
from tests.api.agents import commit_rows, registration
from tests.support.conductors.bare_statuses import be
from tests.support.conductors.work_rows import status
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import asking_own

BODIES = {"resize": {"flavor": {"vcpus": 1, "memory_mb": 32}}}
ROUTES = {kind: ("POST", f"/{kind.replace('_', '-')}") for kind in USER_OPERATIONS} | {"delete": ("DELETE", "")}
# The host that it is on, and whether the agent there is gone.
PLACES = {"on a host": ("host-0", False), "on a host that is gone": ("host-1", True), "nowhere": ("", False)}


@pytest.fixture(scope="module")
def own():
    """The API over three hosts, of which one is gone; nobody works on anything."""
    with asking_own(fleet(3, vcpus=64)) as found:
        for host in ("host-0", "host-1"):
            assert found.put(f"/agents/{host}", registration()).status == 200
        assert found.delete("/agents/host-1").status == 204
        yield found


def made(own):
    """Let somebody ask for an instance; return its uuid."""
    asked = {"flavor": {"vcpus": 1, "memory_mb": 16}, "name": "web"}
    return own.post("/instances", asked).json["instances"][0]


def asked(own, kind, uuid):
    method, path = ROUTES[kind]
    return own.ask(method, f"/instances/{uuid}{path}", BODIES.get(kind, {}) if method == "POST" else None)


def test_every_kind_of_operation_has_a_route():
    assert {
        kind: TABLE["/instances/{id}" + path].get(method) is not None for kind, (method, path) in ROUTES.items()
    } == (dict.fromkeys(USER_OPERATIONS, True))


@pytest.mark.parametrize("kind", USER_OPERATIONS)
@pytest.mark.parametrize("place", PLACES)
def test_in_every_status_it_begins_or_the_sentence_says_why_not(own, kind, place):
    host, is_gone = PLACES[place]
    for each in STATUSES:
        uuid = made(own)
        be(own, uuid, status=each, host=host, node=host)
        answer = asked(own, kind, uuid)
        row = status(1, status=each, task="", host=host)
        expected = may_begin(kind, row)
        if expected:
            assert (answer.status, answer.json["detail"].split(" ", 3)[3]) == (409, expected.split(" ", 3)[3])
        elif kind == "evacuate" and not is_gone:
            assert answer.status == 409
            assert f"{uuid} cannot evacuate: the agent of {host} is there" in answer.json["detail"]
        else:
            assert answer.status == 202, answer.json
            task = own.get(f"/instances/{uuid}").json["task"]
            assert task == TASKS[kind]


@pytest.mark.parametrize("first", USER_OPERATIONS)
@pytest.mark.parametrize("then", USER_OPERATIONS)
def test_while_something_is_done_only_a_deletion_may_come_once(own, first, then):
    begin = next(each for each in STATUSES if not may_begin(first, status(1, status=each, task="", host="h")))
    uuid = made(own)
    be(own, uuid, status=begin, **({"host": "host-1", "node": "host-1"} if first == "evacuate" else {}))
    assert asked(own, first, uuid).status == 202
    answer = asked(own, then, uuid)
    if then == "delete" and first != "delete":
        assert answer.status == 202
        again = asked(own, then, uuid)
        assert (again.status, again.json["detail"]) == (409, f"the instance {uuid} is to be deleted already")
    else:
        word = {"live_migrate": "live-migrate"}.get(then, then)
        assert answer.status == 409
        assert answer.json["detail"] == f"the instance {uuid} cannot {word} now: its task is {TASKS[first]}"


@pytest.mark.parametrize("told", ["ACTIVE", "DELETED"])
def test_what_an_instance_holds_that_agents_run_moves_with_it_alone(own, told):
    uuid = uuid_of("claim", told)
    decision = own.post("/decisions", {"flavor": {"vcpus": 1, "memory_mb": 16}, "instance_uuids": [uuid]}).json
    commit_rows(own, status(9000 + len(told), uuid=uuid_bytes(uuid), status=told, task=""))
    before = own.get(f"/instances/{uuid}").json["allocations"]
    flavor = {"vcpus": 1, "memory_mb": 16}
    answers = [
        own.post(f"/decisions/{decision['uuid']}/next", {}),
        own.post("/decisions", {"flavor": flavor, "move": {"instance_uuid": uuid}}),
    ]
    if told == "DELETED":
        assert [answer.status for answer in answers] == [200, 201]
        return
    problem = f"the instance {uuid} runs here: migrate it to move its resources"
    assert [(answer.status, answer.json["detail"]) for answer in answers] == [(409, problem)] * 2
    assert own.get(f"/instances/{uuid}").json["allocations"] == before


@pytest.mark.parametrize("told", STATUSES)
def test_nothing_is_claimed_by_itself_for_an_instance_that_was_asked_for(own, told):
    uuid, free = made(own), uuid_of("free", told)
    if told != "BUILD":
        be(own, uuid, status=told, host="", node="")
    flavor = {"vcpus": 1, "memory_mb": 16}
    for named in ([uuid], [free, uuid.upper()]):
        for is_dry in (False, True):
            body = {"flavor": flavor, "count": len(named), "instance_uuids": named, "dry_run": is_dry}
            answer = own.post("/decisions", body)
            problem = f"the instance {uuid} exists already, in status {told}"
            assert (answer.status, answer.json.get("detail")) == (409, problem)
    assert own.get(f"/instances/{uuid}").json["allocations"] == {}
    assert own.get(f"/instances/{free}").status == 404
    assert own.post("/decisions", {"flavor": flavor, "instance_uuids": [free]}).status == 201


def test_of_very_many_instances_none_may_have_been_asked_for(tmp_path):
    with asking_own(fleet(1, vcpus=1), url=tmp_path / "roost.db") as own:
        uuid = made(own)
        named = [uuid_of("many", str(number)) for number in range(99_999)]
        asked = {"flavor": {"vcpus": 1, "memory_mb": 16}, "count": 100_000, "dry_run": True}
        answer = own.post("/decisions", {**asked, "instance_uuids": [*named, uuid]})
        assert (answer.status, answer.json["detail"]) == (409, f"the instance {uuid} exists already, in status BUILD")
