"""Idempotency keys across processes: the same request is replayed, another request is refused."""

import pytest

from tests.api.agents import registration
from tests.support.conductors.instance_statuses import set_status
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api

KEY = {"idempotency-key": "once"}
SIZE = {"vcpus": 1, "memory_mb": 16}
KEY_CONFLICT = "Idempotency-Key 'once' belongs to another request: choose a new key"


@pytest.fixture
def api_factory(tmp_path):
    """A function that opens the API as a new process without cached responses, over three hosts of 4 VCPU."""
    initial_fleets = [fleet(3, vcpus=4)]

    def open_api():
        return roost_api(*initial_fleets, url=tmp_path / "roost.db")

    with open_api() as own:
        for host in ("host-0", "host-1", "host-2"):
            assert own.put(f"/agents/{host}", registration()).status == 200
        own.put("/flavors/small", SIZE)
        own.put("/flavors/other", {**SIZE, "vcpus": 2})
        own.put("/images/debian", {})
    initial_fleets.clear()
    return open_api


def create_active_instance(own):
    """Create an instance in status ACTIVE; return its UUID."""
    (uuid,) = own.post("/instances", {"flavor": "small", "name": "web"}).json["instances"]
    set_status(own, uuid, status="ACTIVE")
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
def test_key_with_another_body_is_refused_by_all_processes(api_factory, path, body, other):
    with api_factory() as own:
        uuid = create_active_instance(own)
        if path == "evacuate":
            own.delete("/agents/host-0")
        first = own.post(f"/instances/{uuid}/{path}", body, headers=KEY)
        assert first.status == 202, first.json
    with api_factory() as own:
        again = own.post(f"/instances/{uuid}/{path}", body, headers=KEY)
        assert (again.status, again.json, again.headers["idempotency-replayed"]) == (202, first.json, "true")
        refused = own.post(f"/instances/{uuid}/{path}", other, headers=KEY)
        assert (refused.status, refused.json["detail"]) == (422, KEY_CONFLICT)


def test_key_with_another_kind_of_deletion_is_refused(api_factory):
    with api_factory() as own:
        uuid = create_active_instance(own)
        first = own.delete(f"/instances/{uuid}", headers=KEY)
        assert first.status == 202
    with api_factory() as own:
        assert own.delete(f"/instances/{uuid}", headers=KEY).json == first.json
        refused = own.delete(f"/instances/{uuid}?force=true", headers=KEY)
        assert (refused.status, refused.json["detail"]) == (422, KEY_CONFLICT)


def test_query_parameters_are_part_of_the_keyed_request(api_factory):
    with api_factory() as own:
        uuid = create_active_instance(own)
        first = own.delete(f"/instances/{uuid}", headers=KEY)
        refused = own.delete(f"/instances/{uuid}?force=true", headers=KEY)
        assert (first.status, refused.status, refused.json["detail"]) == (202, 422, KEY_CONFLICT)
        for same in (f"/instances/{uuid}?force=false", f"/instances/{uuid.upper()}"):
            again = own.delete(same, headers=KEY)
            assert (again.status, again.json, again.headers["idempotency-replayed"]) == (202, first.json, "true")


def test_only_a_repeated_keyed_request_has_the_replay_header(api_factory):
    with api_factory() as own:
        create_active_instance(own)
        drain = own.post("/hosts/host-0/drain", {}, headers=KEY)
        path = f"/operations/{drain.json['operation']}"
        for headers in ({}, {}, KEY):
            cancelled = own.delete(path, headers=headers)
            assert (cancelled.status, cancelled.json) == (202, drain.json)
            assert "idempotency-replayed" not in cancelled.headers
        again = own.post("/hosts/HOST-0/drain", {}, headers=KEY)
        assert (again.json, again.headers["idempotency-replayed"]) == (drain.json, "true")


def test_key_of_a_drain_is_refused_for_another_host(api_factory):
    with api_factory() as own:
        first = own.post("/hosts/host-1/drain", {}, headers=KEY)
        assert first.status == 202
    with api_factory() as own:
        assert own.post("/hosts/HOST-1/drain", {}, headers=KEY).json == first.json
        for path, body in (("/hosts/host-2/drain", {}), ("/hosts/host-1/drain", {"at_once": 9})):
            refused = own.post(path, body, headers=KEY)
            assert (refused.status, refused.json["detail"]) == (422, KEY_CONFLICT)
        assert own.get("/hosts/host-2").json["disabled"] is False


def test_replay_works_after_its_flavor_or_image_was_deleted(api_factory):
    cases = [("resize", {"flavor": "other"}, "/flavors/other"), ("rebuild", {"image": "debian"}, "/images/debian")]
    for path, body, deleted in cases:
        with api_factory() as own:
            uuid = create_active_instance(own)
            first = own.post(f"/instances/{uuid}/{path}", body, headers={"idempotency-key": path})
            assert first.status == 202, first.json
        with api_factory() as own:
            own.delete(deleted)
            again = own.post(f"/instances/{uuid}/{path}", body, headers={"idempotency-key": path})
            assert (again.status, again.json) == (202, first.json)


@pytest.mark.parametrize("path", ["/instances", "/decisions"])
@pytest.mark.parametrize("is_stored_again", [True, False])
def test_replay_resolves_names_as_in_the_first_request(api_factory, path, is_stored_again):
    name = {"name": "web"} if path == "/instances" else {}
    group = {"name": "near", "policy": "soft-affinity"}
    with api_factory() as own:
        own.put("/flavors/large", {**SIZE, "vcpus": 3})
        group_uuid = own.post("/groups", group).json["uuid"]
        body = {"flavor": "small", "image": "debian", "group": "near", **name}
        first = own.post(path, body, headers=KEY)
        assert first.status in {201, 202}, first.json
    with api_factory() as own:
        for url in ("/flavors/small", "/images/debian"):
            own.delete(url)
        if is_stored_again:
            own.put("/flavors/small", {**SIZE, "vcpus": 2})
            own.put("/images/debian", {"properties": {"hw_architecture": "x86_64"}})
            own.post("/groups", group)
    with api_factory() as own:
        again = own.post(path, body, headers=KEY)
        assert (again.status, again.json, again.headers.get("idempotency-replayed")) == (
            first.status,
            first.json,
            "true",
        )
        for other in ({"flavor": "large"}, {"flavor": {**SIZE, "vcpus": 4}}, {"image": None}, {"count": 2}):
            refused = own.post(path, {**body, "group": group_uuid, **other}, headers=KEY)
            assert (refused.status, refused.json["detail"]) == (422, KEY_CONFLICT), other


@pytest.mark.parametrize("path", ["/instances", "/decisions"])
@pytest.mark.parametrize("is_created_again", [True, False])
def test_replay_works_after_its_group_was_deleted(api_factory, path, is_created_again):
    name = {"name": "web"} if path == "/instances" else {}
    group = {"name": "near", "policy": "affinity"}
    with api_factory() as own:
        group_uuid = own.post("/groups", group).json["uuid"]
        body = {"flavor": "small", "group": "near", **name}
        first = own.post(path, body, headers=KEY)
        if path == "/instances":
            set_status(own, first.json["instances"][0], status="DELETED")
        else:
            own.delete(f"/instances/{first.json['picks'][0]['instance_uuid']}")
        assert own.delete(f"/groups/{group_uuid}").status == 204
        if is_created_again:
            own.post("/groups", group)
    for spelling in ("near", group_uuid):
        with api_factory() as own:
            again = own.post(path, {**body, "group": spelling}, headers=KEY)
            assert (again.status, again.json) == (first.status, first.json), spelling
            assert own.post(path, {**body, "count": 2}, headers=KEY).status == 422
            assert own.post(path, {**body, "group": None}, headers=KEY).status == 422


def test_replayed_decision_ignores_newer_instances_with_its_uuids(api_factory):
    body = {"flavor": {"name": "own", **SIZE}, "instance_uuids": ["00000000-0000-4000-8000-000000000000"]}
    with api_factory() as own:
        first = own.post("/decisions", body, headers=KEY)
        assert own.delete(f"/instances/{body['instance_uuids'][0]}").status == 204
        assert own.post("/instances", {**body, "name": "web"}).status == 202
    with api_factory() as own:
        assert own.post("/decisions", body, headers=KEY).json == first.json
        assert own.post("/decisions", body, headers={"idempotency-key": "twice"}).status == 409


def test_key_of_one_operation_is_refused_for_another(api_factory):
    with api_factory() as own:
        uuid, other = create_active_instance(own), create_active_instance(own)
        assert own.post(f"/instances/{uuid}/stop", headers=KEY).status == 202
        for path in (f"/instances/{uuid}/reboot", f"/instances/{other}/stop", "/hosts/host-1/drain"):
            assert own.post(path, headers=KEY).status == 422
        assert own.post("/instances", {"flavor": "small", "name": "web"}, headers=KEY).status == 422


class StaleReader:
    """A reader that misses newly committed operations a number of times."""

    def __init__(self, inner, misses):
        self._inner, self.misses = inner, misses

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def operation_by_uuid(self, uuid):
        """Return an operation, unless it is missed."""
        self.misses -= 1
        return None if self.misses >= 0 else self._inner.operation_by_uuid(uuid)


@pytest.mark.parametrize(("path", "reads"), [("live-migrate", 3), ("stop", 2), ("resize", 3), ("rebuild", 3)])
def test_replay_finds_an_operation_committed_between_two_reads(api_factory, path, reads):
    body = {"flavor": "other"} if path == "resize" else {}
    with api_factory() as own:
        uuid = create_active_instance(own)
        first = own.post(f"/instances/{uuid}/{path}", body, headers=KEY)
    with api_factory() as own:
        stale_reader = own.serving.run(lambda current: StaleReader(own.agents.reader(current), reads))
        own.agents.reader = lambda _current: stale_reader
        again = own.post(f"/instances/{uuid}/{path}", body, headers=KEY)
        assert (stale_reader.misses < 0, again.status, again.json) == (True, 202, first.json)


@pytest.mark.parametrize(("vcpus", "outcome"), [(1, "granted"), (9, "refused")])
def test_keyed_move_is_decided_once(api_factory, vcpus, outcome):
    uuid, flavor = "00000000-0000-4000-8000-000000000000", {"name": "own", **SIZE}
    body = {"flavor": {**flavor, "vcpus": vcpus}, "move": {"instance_uuid": uuid}}
    with api_factory() as own:
        own.post("/groups", {"name": "near", "policy": "soft-affinity"})
        held = {"flavor": flavor, "instance_uuids": [uuid], "project_id": "p", "user_id": "u", "group": "near"}
        assert own.post("/decisions", held).status == 201
        first = own.post("/decisions", body, headers=KEY)
        assert (first.status, first.json["outcome"]) == (201, outcome)
    with api_factory() as own:
        again = own.post("/decisions", body, headers=KEY)
        assert (again.status, again.json, again.headers["idempotency-replayed"]) == (201, first.json, "true")
        for other in ({"project_id": "q"}, {"move": {"instance_uuid": uuid, "may_stay": True}}):
            refused = own.post("/decisions", {**body, **other}, headers=KEY)
            assert (refused.status, refused.json["detail"]) == (422, KEY_CONFLICT)
