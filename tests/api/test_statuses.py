"""Operations on instances in every status: started, or refused with the cause."""

import pytest

from roost.api.v1.routes import TABLE
from roost.model.names import uuid_bytes
from roost.model.work.operation import STATUSES, TASKS, USER_OPERATIONS, may_begin
from roost.simulator.stable_uuids import uuid_of
from tests.api.agents import commit_rows, registration
from tests.support.conductors.instance_statuses import set_status
from tests.support.conductors.work_rows import status
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api

BODIES = {"resize": {"flavor": {"vcpus": 1, "memory_mb": 32}}}
ROUTES = {kind: ("POST", f"/{kind.replace('_', '-')}") for kind in USER_OPERATIONS} | {"delete": ("DELETE", "")}
# The host of the instance, and whether its agent is gone.
PLACES = {"on a host": ("host-0", False), "on a host that is gone": ("host-1", True), "nowhere": ("", False)}


@pytest.fixture(scope="module")
def own():
    """The /v1 API over three hosts, one of them gone; no conductor runs."""
    with roost_api(fleet(3, vcpus=64)) as client:
        for host in ("host-0", "host-1"):
            assert client.put(f"/agents/{host}", registration()).status == 200
        assert client.delete("/agents/host-1").status == 204
        yield client


def create_instance(own):
    """Create an instance; return its UUID."""
    body = {"flavor": {"vcpus": 1, "memory_mb": 16}, "name": "web"}
    return own.post("/instances", body).json["instances"][0]


def start_operation(own, kind, uuid):
    method, path = ROUTES[kind]
    return own.ask(method, f"/instances/{uuid}{path}", BODIES.get(kind, {}) if method == "POST" else None)


def test_every_user_operation_has_a_route():
    assert {
        kind: TABLE["/instances/{id}" + path].get(method) is not None for kind, (method, path) in ROUTES.items()
    } == (dict.fromkeys(USER_OPERATIONS, True))


@pytest.mark.parametrize("kind", USER_OPERATIONS)
@pytest.mark.parametrize("place", PLACES)
def test_operation_starts_or_is_refused_with_the_cause_by_status(own, kind, place):
    host, is_gone = PLACES[place]
    for each in STATUSES:
        uuid = create_instance(own)
        set_status(own, uuid, status=each, host=host, node=host)
        response = start_operation(own, kind, uuid)
        row = status(1, status=each, task="", host=host)
        expected = may_begin(kind, row)
        if expected:
            assert (response.status, response.json["detail"].split(" ", 3)[3]) == (409, expected.split(" ", 3)[3])
        elif kind == "evacuate" and not is_gone:
            assert response.status == 409
            assert f"{uuid} cannot be evacuated: the agent of {host} is there" in response.json["detail"]
        else:
            assert response.status == 202, response.json
            task = own.get(f"/instances/{uuid}").json["task"]
            assert task == TASKS[kind]


@pytest.mark.parametrize("first", USER_OPERATIONS)
@pytest.mark.parametrize("then", USER_OPERATIONS)
def test_only_one_deletion_may_interrupt_an_operation(own, first, then):
    startable = next(each for each in STATUSES if not may_begin(first, status(1, status=each, task="", host="h")))
    uuid = create_instance(own)
    set_status(own, uuid, status=startable, **({"host": "host-1", "node": "host-1"} if first == "evacuate" else {}))
    assert start_operation(own, first, uuid).status == 202
    response = start_operation(own, then, uuid)
    if then == "delete" and first != "delete":
        assert response.status == 202
        again = start_operation(own, then, uuid)
        assert (again.status, again.json["detail"]) == (409, f"the instance {uuid} is being deleted already")
    else:
        word = {"live_migrate": "live-migrate"}.get(then, then)
        assert response.status == 409
        assert response.json["detail"] == f"the instance {uuid} cannot {word} now: its task is {TASKS[first]}"


@pytest.mark.parametrize("status_name", ["ACTIVE", "DELETED"])
def test_claims_of_a_running_instance_move_only_with_it(own, status_name):
    uuid = uuid_of("claim", status_name)
    decision = own.post("/decisions", {"flavor": {"vcpus": 1, "memory_mb": 16}, "instance_uuids": [uuid]}).json
    commit_rows(own, status(9000 + len(status_name), uuid=uuid_bytes(uuid), status=status_name, task=""))
    before = own.get(f"/instances/{uuid}").json["allocations"]
    flavor = {"vcpus": 1, "memory_mb": 16}
    answers = [
        own.post(f"/decisions/{decision['uuid']}/next", {}),
        own.post("/decisions", {"flavor": flavor, "move": {"instance_uuid": uuid}}),
    ]
    if status_name == "DELETED":
        assert [response.status for response in answers] == [200, 201]
        return
    problem = f"the instance {uuid} runs here: migrate it to move its resources"
    assert [(response.status, response.json["detail"]) for response in answers] == [(409, problem)] * 2
    assert own.get(f"/instances/{uuid}").json["allocations"] == before


@pytest.mark.parametrize("status_name", STATUSES)
def test_existing_instance_cannot_be_claimed_again(own, status_name):
    uuid, free = create_instance(own), uuid_of("free", status_name)
    if status_name != "BUILD":
        set_status(own, uuid, status=status_name, host="", node="")
    flavor = {"vcpus": 1, "memory_mb": 16}
    for uuids in ([uuid], [free, uuid.upper()]):
        for is_dry in (False, True):
            body = {"flavor": flavor, "count": len(uuids), "instance_uuids": uuids, "dry_run": is_dry}
            response = own.post("/decisions", body)
            problem = f"the instance {uuid} exists already, in status {status_name}"
            assert (response.status, response.json.get("detail")) == (409, problem)
    assert own.get(f"/instances/{uuid}").json["allocations"] == {}
    assert own.get(f"/instances/{free}").status == 404
    assert own.post("/decisions", {"flavor": flavor, "instance_uuids": [free]}).status == 201


def test_existing_instance_is_found_among_100_000_uuids(tmp_path):
    with roost_api(fleet(1, vcpus=1), url=tmp_path / "roost.db") as own:
        uuid = create_instance(own)
        uuids = [uuid_of("many", str(number)) for number in range(99_999)]
        body = {"flavor": {"vcpus": 1, "memory_mb": 16}, "count": 100_000, "dry_run": True}
        response = own.post("/decisions", {**body, "instance_uuids": [*uuids, uuid]})
        assert (response.status, response.json["detail"]) == (
            409,
            f"the instance {uuid} exists already, in status BUILD",
        )
