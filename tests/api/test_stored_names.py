"""Stored flavors and images over the /v1 API, in process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.servers.in_process_api import roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}


def decide(own, body):
    """Request a decision and return it."""
    response = own.post("/decisions", body)
    assert response.status == 201, response.json
    return response.json


def test_flavor_is_stored_replaced_used_and_deleted(own):
    stored = own.put("/flavors/small", {"vcpus": 2, "extra_specs": {"hw:cpu_policy": "shared"}})
    assert (stored.status, stored.json) == (200, own.get("/flavors/small").json)
    assert own.put("/flavors/small", {"name": "small", "vcpus": 3}).json["extra_specs"] == {}
    assert [each["vcpus"] for each in own.get("/flavors").json["flavors"]] == [3]
    assert decide(own, {"flavor": "small"})["outcome"] == "granted"
    assert own.get("/hosts/host-0").json["resources"]["VCPU"]["used"] == 3
    decide(own, {"flavor": {"name": "small", "vcpus": 1}})
    assert own.get("/capacity?flavor=small").json["count"] == 2
    assert [own.delete("/flavors/small").status for _ in range(2)] == [204, 404]
    assert (own.get("/flavors/small").status, own.get("/flavors").json) == (404, {"flavors": []})
    assert own.put("/flavors/small", {"vcpus": 1}).json["vcpus"] == 1


def test_image_is_stored_used_and_deleted(own):
    own.put("/images/arm", {"properties": {"hw_architecture": "aarch64"}})
    (shown,) = own.get("/images").json["images"]
    assert shown == own.get("/images/arm").json
    assert (shown["name"], shown["properties"]) == ("arm", {"hw_architecture": "aarch64"})
    decision = decide(own, {**SMALL, "image": "arm"})
    request = own.get(f"/decisions/{decision['uuid']}/why").json["request"]
    assert request["image"]["properties"] == {"hw_architecture": "aarch64"}
    assert own.delete("/images/arm").status == 204
    refused = own.post("/decisions", {**SMALL, "image": "arm"})
    assert (refused.status, refused.json["field"]) == (400, "$.image")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/flavors/a", {"vcpus": -1}, "$.vcpus"),
        ("/flavors/a", {"cpus": 1}, "$"),
        ("/flavors/a", {"name": "b"}, "$.name"),
        ("/flavors/a", {"name": "a" * 256}, "$.name"),
        ("/flavors/a", {"extra_specs": {"hw:cpu_policy": "some"}}, "$.extra_specs"),
        ("/flavors/a", {"extra_specs": {"hw:none": "1"}}, "$.extra_specs"),
        (f"/flavors/{'a' * 256}", {"vcpus": 1}, None),
        ("/images/a", {"properties": {"a": 1}}, "$.properties['a']"),
    ],
)
def test_invalid_flavor_or_image_is_not_stored(own, path, body, field):
    response = own.put(path, body)
    assert (response.status, response.json.get("field")) == (400, field), response.json
    assert (own.get("/flavors").json["flavors"], own.get("/images").json["images"]) == ([], [])


def test_concurrent_writes_of_one_flavor_agree_in_all_processes(postgres_url):
    with roost_api(url=postgres_url) as one, roost_api(url=postgres_url) as other:
        ready = threading.Barrier(6)

        def store(at):
            ready.wait()
            return (one, other)[at % 2].put("/flavors/a", {"vcpus": at}).status

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(store, range(6))) == [200] * 6
        assert one.get("/flavors/a").json == other.get("/flavors/a").json
