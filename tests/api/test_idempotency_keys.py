"""What is asked of instances twice under one key, also of another process: the same again is answered, else refused."""

import pytest

from tests.api.agents import registration
from tests.support.conductors.bare_statuses import be
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import asking_own

KEY = {"idempotency-key": "once"}
SIZE = {"vcpus": 1, "memory_mb": 16}
OTHERWISE = "Idempotency-Key 'once' belongs to another request: choose a new key"


@pytest.fixture
def processes(tmp_path):
    """What opens the API, each time as a process that remembers no answer, over three hosts of 4 VCPU."""
    fleets = [fleet(3, vcpus=4)]

    def opened():
        return asking_own(*fleets, url=tmp_path / "roost.db")

    with opened() as own:
        for host in ("host-0", "host-1", "host-2"):
            assert own.put(f"/agents/{host}", registration()).status == 200
        own.put("/flavors/small", SIZE)
        own.put("/flavors/other", {**SIZE, "vcpus": 2})
        own.put("/images/debian", {})
    fleets.clear()
    return opened


def running(own):
    """Let an instance be there as one that runs; return its uuid."""
    (uuid,) = own.post("/instances", {"flavor": "small", "name": "web"}).json["instances"]
    be(own, uuid, status="ACTIVE")
    return uuid


@pytest.mark.parametrize(
    ("path", "body", "other"),
    [
        ("resize", {"flavor": "other"}, {"flavor": {**SIZE, "vcpus": 3}}),
        ("resize", {"flavor": {**SIZE, "vcpus": 3}}, {"flavor": "other"}),
        ("migrate", {}, {"host": "host-1"}),
        ("migrate", {"host": "host-1"}, {"host": "host-2"}),
        ("migrate", {"verify": True}, {}),
        ("live-migrate", {"host": "host-1"}, {}),
        ("evacuate", {"host": "host-1"}, {"host": "host-2"}),
    ],
)
def test_another_body_under_a_key_is_refused_by_any_process(processes, path, body, other):
    with processes() as own:
        uuid = running(own)
        if path == "evacuate":
            own.delete("/agents/host-0")
        first = own.post(f"/instances/{uuid}/{path}", body, headers=KEY)
        assert first.status == 202, first.json
    with processes() as own:
        again = own.post(f"/instances/{uuid}/{path}", body, headers=KEY)
        assert (again.status, again.json, again.headers["idempotency-replayed"]) == (202, first.json, "true")
        refused = own.post(f"/instances/{uuid}/{path}", other, headers=KEY)
        assert (refused.status, refused.json["detail"]) == (422, OTHERWISE)


def test_another_way_of_deletion_under_a_key_is_refused(processes):
    with processes() as own:
        uuid = running(own)
        first = own.delete(f"/instances/{uuid}", headers=KEY)
        assert first.status == 202
    with processes() as own:
        assert own.delete(f"/instances/{uuid}", headers=KEY).json == first.json
        refused = own.delete(f"/instances/{uuid}?force=true", headers=KEY)
        assert (refused.status, refused.json["detail"]) == (422, OTHERWISE)


def test_what_the_query_says_is_a_part_of_what_is_asked_under_a_key(processes):
    with processes() as own:
        uuid = running(own)
        first = own.delete(f"/instances/{uuid}", headers=KEY)
        refused = own.delete(f"/instances/{uuid}?force=true", headers=KEY)
        assert (first.status, refused.status, refused.json["detail"]) == (202, 422, OTHERWISE)
        for same in (f"/instances/{uuid}?force=false", f"/instances/{uuid.upper()}"):
            again = own.delete(same, headers=KEY)
            assert (again.status, again.json, again.headers["idempotency-replayed"]) == (202, first.json, "true")


def test_only_what_was_asked_before_under_its_key_is_answered_as_such(processes):
    with processes() as own:
        running(own)
        drain = own.post("/hosts/host-0/drain", {}, headers=KEY)
        path = f"/operations/{drain.json['operation']}"
        for headers in ({}, {}, KEY):
            cancelled = own.delete(path, headers=headers)
            assert (cancelled.status, cancelled.json) == (202, drain.json)
            assert "idempotency-replayed" not in cancelled.headers
        again = own.post("/hosts/HOST-0/drain", {}, headers=KEY)
        assert (again.json, again.headers["idempotency-replayed"]) == (drain.json, "true")


def test_a_drain_of_another_host_under_a_key_is_refused_and_not_taken_for_the_first(processes):
    with processes() as own:
        first = own.post("/hosts/host-1/drain", {}, headers=KEY)
        assert first.status == 202
    with processes() as own:
        assert own.post("/hosts/HOST-1/drain", {}, headers=KEY).json == first.json
        for path, body in (("/hosts/host-2/drain", {}), ("/hosts/host-1/drain", {"at_once": 9})):
            refused = own.post(path, body, headers=KEY)
            assert (refused.status, refused.json["detail"]) == (422, OTHERWISE)
        assert own.get("/hosts/host-2").json["disabled"] is False


def test_what_is_asked_again_is_answered_though_its_flavor_or_image_is_gone(processes):
    asked = [("resize", {"flavor": "other"}, "/flavors/other"), ("rebuild", {"image": "debian"}, "/images/debian")]
    for path, body, gone in asked:
        with processes() as own:
            uuid = running(own)
            first = own.post(f"/instances/{uuid}/{path}", body, headers={"idempotency-key": path})
            assert first.status == 202, first.json
        with processes() as own:
            own.delete(gone)
            again = own.post(f"/instances/{uuid}/{path}", body, headers={"idempotency-key": path})
            assert (again.status, again.json) == (202, first.json)


@pytest.mark.parametrize("path", ["/instances", "/decisions"])
@pytest.mark.parametrize("is_stored_anew", [True, False])
def test_what_is_asked_again_by_names_is_what_they_stood_for_then(processes, path, is_stored_anew):
    name = {"name": "web"} if path == "/instances" else {}
    group = {"name": "near", "policy": "soft-affinity"}
    with processes() as own:
        own.put("/flavors/large", {**SIZE, "vcpus": 3})
        made = own.post("/groups", group).json["uuid"]
        asked = {"flavor": "small", "image": "debian", "group": "near", **name}
        first = own.post(path, asked, headers=KEY)
        assert first.status in {201, 202}, first.json
    with processes() as own:
        for named in ("/flavors/small", "/images/debian"):
            own.delete(named)
        if is_stored_anew:
            own.put("/flavors/small", {**SIZE, "vcpus": 2})
            own.put("/images/debian", {"properties": {"hw_architecture": "x86_64"}})
            own.post("/groups", group)
    with processes() as own:
        again = own.post(path, asked, headers=KEY)
        assert (again.status, again.json, again.headers.get("idempotency-replayed")) == (
            first.status,
            first.json,
            "true",
        )
        for other in ({"flavor": "large"}, {"flavor": {**SIZE, "vcpus": 4}}, {"image": None}, {"count": 2}):
            refused = own.post(path, {**asked, "group": made, **other}, headers=KEY)
            assert (refused.status, refused.json["detail"]) == (422, OTHERWISE), other


def test_a_decision_on_named_instances_is_the_answer_though_somebody_asked_for_such_ones_since(processes):
    asked = {"flavor": {"name": "own", **SIZE}, "instance_uuids": ["00000000-0000-4000-8000-000000000000"]}
    with processes() as own:
        first = own.post("/decisions", asked, headers=KEY)
        assert own.delete(f"/instances/{asked['instance_uuids'][0]}").status == 204
        assert own.post("/instances", {**asked, "name": "web"}).status == 202
    with processes() as own:
        assert own.post("/decisions", asked, headers=KEY).json == first.json
        assert own.post("/decisions", asked, headers={"idempotency-key": "twice"}).status == 409


def test_a_key_of_one_operation_is_none_of_another(processes):
    with processes() as own:
        uuid, other = running(own), running(own)
        assert own.post(f"/instances/{uuid}/stop", headers=KEY).status == 202
        for path in (f"/instances/{uuid}/reboot", f"/instances/{other}/stop", "/hosts/host-1/drain"):
            assert own.post(path, headers=KEY).status == 422
        assert own.post("/instances", {"flavor": "small", "name": "web"}, headers=KEY).status == 422


class Behind:
    """Reads work, and of operations misses what another process has just committed, so many times."""

    def __init__(self, inner, misses):
        self._inner, self.misses = inner, misses

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def operation_of(self, uuid):
        """Return an operation, if it is not missed."""
        self.misses -= 1
        return None if self.misses >= 0 else self._inner.operation_of(uuid)


@pytest.mark.parametrize(("path", "reads"), [("live-migrate", 3), ("stop", 2), ("resize", 3), ("rebuild", 3)])
def test_what_another_process_began_between_two_reads_is_the_answer(processes, path, reads):
    body = {"flavor": "other"} if path == "resize" else {}
    with processes() as own:
        uuid = running(own)
        first = own.post(f"/instances/{uuid}/{path}", body, headers=KEY)
    with processes() as own:
        behind = own.serving.run(lambda current: Behind(own.agents.reader(current), reads))
        own.agents.reader = lambda _current: behind
        again = own.post(f"/instances/{uuid}/{path}", body, headers=KEY)
        assert (behind.misses < 0, again.status, again.json) == (True, 202, first.json)


@pytest.mark.parametrize(("vcpus", "outcome"), [(1, "granted"), (9, "refused")])
def test_a_decision_to_move_under_a_key_is_made_once(processes, vcpus, outcome):
    uuid, flavor = "00000000-0000-4000-8000-000000000000", {"name": "own", **SIZE}
    asked = {"flavor": {**flavor, "vcpus": vcpus}, "move": {"instance_uuid": uuid}}
    with processes() as own:
        own.post("/groups", {"name": "near", "policy": "soft-affinity"})
        held = {"flavor": flavor, "instance_uuids": [uuid], "project_id": "p", "user_id": "u", "group": "near"}
        assert own.post("/decisions", held).status == 201
        first = own.post("/decisions", asked, headers=KEY)
        assert (first.status, first.json["outcome"]) == (201, outcome)
    with processes() as own:
        again = own.post("/decisions", asked, headers=KEY)
        assert (again.status, again.json, again.headers["idempotency-replayed"]) == (201, first.json, "true")
        for other in ({"project_id": "q"}, {"move": {"instance_uuid": uuid, "may_stay": True}}):
            refused = own.post("/decisions", {**asked, **other}, headers=KEY)
            assert (refused.status, refused.json["detail"]) == (422, OTHERWISE)
