"""The OpenAPI document says what is asked and answered."""

import re

import jsonschema
import msgspec
import pytest

from roost.api.v1 import openapi
from roost.api.v1.routes import TABLE
from roost.model.names import uuid_text
from roost.model.work.change_memory import Drain
from tests.api.agents import ORDER, commit_rows
from tests.support.conductors.work_rows import migration, operation, order, status
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import asking_own

RACK = "00000000-0000-4000-8000-000000000001"
DOCUMENT = openapi.document()
OPERATIONS = [(path, method) for path, methods in TABLE.items() for method in methods]
SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}


def referred(value):
    """Yield every reference in a document."""
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        for each in value.values():
            yield from referred(each)
    elif isinstance(value, list):
        for each in value:
            yield from referred(each)


def test_what_is_referred_to_is_there():
    schemas = DOCUMENT["components"]["schemas"]
    assert {ref.removeprefix("#/components/schemas/") for ref in referred(DOCUMENT)} <= set(schemas)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in schemas)


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_an_operation_is_described(path, method):
    told = DOCUMENT["paths"][path][method.lower()]
    route = TABLE[path][method]
    assert told["summary"] == route.about
    assert ("requestBody" in told) == (route.body is not None)
    named = {each["name"] for each in told["parameters"]}
    assert set(re.findall(r"{(\w+)}", path)) <= named
    assert ("Idempotency-Key" in named) == route.is_keyed
    assert all(each["schema"].get("description", "-") for each in told["parameters"])


def test_names_of_operations_differ():
    names = [each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()]
    assert len(set(names)) == len(names) == len(OPERATIONS)


STOPPED, RUNNING = (status(number, status=word, task="") for number, word in ((1, "SHUTOFF"), (2, "ACTIVE")))
LIVE, LOST = (
    status(number, status="ACTIVE", task="", host=host, node=host) for number, host in ((3, "host-0"), (4, "host-9"))
)
MOVE = migration(1, kind="live", status="failed", source_host="host-0")
# What is changed or moved, by what is asked of it.
CHANGED = {
    kind: status(10 + number, status=word, task="", host="host-0", node="host-0")
    for number, (kind, word) in enumerate(
        {
            "rebuild": "ACTIVE",
            "reboot": "ACTIVE",
            "shelve": "ACTIVE",
            "offload": "SHELVED",
            "unshelve": "SHELVED",
            "reset": "ERROR",
            "resize": "ACTIVE",
            "migrate": "ACTIVE",
            "confirm": "VERIFY_RESIZE",
            "revert": "VERIFY_RESIZE",
        }.items()
    )
}
BODIES = {"rebuild": {}, "migrate": {}, "resize": {"flavor": {"name": "large", "vcpus": 2}}}
DRAIN = operation(
    3, kind="drain", step="move", body=msgspec.msgpack.encode(Drain(host="host-1", instances=(), at_once=1))
)
ENDED = operation(2, kind="stop", outcome="done")

# What is asked of each path; an empty brace is what the first decision made.
ASKED = {
    ("/decisions", "POST"): ("/decisions", SMALL),
    ("/decisions", "GET"): ("/decisions", None),
    ("/decisions/{id}", "GET"): ("/decisions/{}", None),
    ("/decisions/{id}/why", "GET"): ("/decisions/{}/why", None),
    ("/decisions/{id}/replay", "POST"): ("/decisions/{}/replay", {}),
    ("/decisions/{id}/next", "POST"): ("/decisions/{}/next", {}),
    ("/instances", "POST"): ("/instances", {**SMALL, "name": "web"}),
    ("/instances", "GET"): ("/instances", None),
    ("/instances/{id}", "GET"): ("/instances/{}", None),
    ("/instances/{id}", "DELETE"): ("/instances/{}", None),
    ("/instances/{id}/start", "POST"): (f"/instances/{uuid_text(STOPPED.uuid)}/start", None),
    ("/instances/{id}/stop", "POST"): (f"/instances/{uuid_text(RUNNING.uuid)}/stop", None),
    ("/instances/{id}/live-migrate", "POST"): (f"/instances/{uuid_text(LIVE.uuid)}/live-migrate", {"host": "host-1"}),
    ("/instances/{id}/evacuate", "POST"): (f"/instances/{uuid_text(LOST.uuid)}/evacuate", {}),
    ("/migrations", "GET"): ("/migrations?status=failed&source=HOST-0", None),
    ("/migrations/{uuid}", "GET"): (f"/migrations/{uuid_text(MOVE.uuid)}", None),
    **{
        (f"/instances/{{id}}/{kind}", "POST"): (f"/instances/{uuid_text(row.uuid)}/{kind}", BODIES.get(kind))
        for kind, row in CHANGED.items()
    },
    ("/operations/{id}", "DELETE"): (f"/operations/{uuid_text(DRAIN.uuid)}", None),
    ("/operations/{id}", "GET"): (f"/operations/{uuid_text(ENDED.uuid)}", None),
    ("/events", "GET"): ("/events", None),
    ("/capacity", "GET"): ("/capacity?flavor=small&by=zone", None),
    ("/capacity", "POST"): ("/capacity", {"request": SMALL}),
    ("/aggregates", "POST"): ("/aggregates", {"name": "rack", "uuid": RACK}),
    ("/aggregates", "GET"): ("/aggregates", None),
    ("/aggregates/{uuid}", "GET"): (f"/aggregates/{RACK}", None),
    ("/aggregates/{uuid}", "PATCH"): (f"/aggregates/{RACK}", {"availability_zone": "east"}),
    ("/aggregates/{uuid}/hosts/{host}", "PUT"): (f"/aggregates/{RACK}/hosts/host-0", None),
    ("/zones", "GET"): ("/zones", None),
    ("/hosts", "GET"): ("/hosts", None),
    ("/hosts/{host}", "GET"): ("/hosts/host-0", None),
    ("/aggregates/{uuid}/hosts/{host}", "DELETE"): (f"/aggregates/{RACK}/hosts/host-0", None),
    ("/aggregates/{uuid}", "DELETE"): (f"/aggregates/{RACK}", None),
    ("/services", "GET"): ("/services", None),
    ("/services/{host}", "PATCH"): ("/services/host-0", {"disabled": True}),
    ("/flavors/{name}", "PUT"): ("/flavors/small", {"vcpus": 1}),
    ("/flavors", "GET"): ("/flavors", None),
    ("/flavors/{name}", "GET"): ("/flavors/small", None),
    ("/flavors/{name}", "DELETE"): ("/flavors/small", None),
    ("/images/{name}", "PUT"): ("/images/debian", {"properties": {"hw_architecture": "x86_64"}}),
    ("/images", "GET"): ("/images", None),
    ("/images/{name}", "GET"): ("/images/debian", None),
    ("/images/{name}", "DELETE"): ("/images/debian", None),
    ("/groups", "POST"): ("/groups", {"name": "web", "policy": "affinity", "uuid": RACK}),
    ("/groups", "GET"): ("/groups", None),
    ("/groups/{uuid}", "GET"): (f"/groups/{RACK}", None),
    ("/agents/{host}", "PUT"): ("/agents/host-0", {"run": RACK, "driver": "fake", "nodes": []}),
    ("/agents/{host}/nodes/{node}", "PUT"): ("/agents/host-0/nodes/host-0", {"host_ip": "10.0.0.1"}),
    ("/agents/{host}/standings", "POST"): ("/agents/host-0/standings", {"instances": [RACK]}),
    ("/agents", "GET"): ("/agents", None),
    ("/agents/{host}", "GET"): ("/agents/host-0", None),
    ("/hosts/{host}/drain", "POST"): ("/hosts/host-0/drain", {"dry_run": True}),
    ("/orders/poll", "POST"): (
        "/orders/poll",
        {"agents": [{"host": "host-0", "run": RACK, "fence": 1}], "wait_s": 0},
    ),
    ("/orders/{id}/answer", "POST"): ("/orders/1/answer", {"run": RACK, "outcome": "ok"}),
    ("/agents/{host}", "DELETE"): ("/agents/host-0", None),
}


def test_answers_are_as_the_document_says():
    assert set(ASKED) == set(OPERATIONS)
    with asking_own(fleet(3, vcpus=4)) as own:
        commit_rows(own, operation(1), ENDED, STOPPED, RUNNING, order(1, host="host-0", action="destroy", body=ORDER))
        made = own.post("/decisions", SMALL).json
        numbers = own.in_thread(lambda roost: {kind: number for (kind, _), number in roost.state.documents.items()})
        known = {"flavor_id": numbers["flavor"], "request_id": numbers["request"]}
        commit_rows(
            own, MOVE, DRAIN, *(msgspec.structs.replace(each, **known) for each in (LIVE, LOST, *CHANGED.values()))
        )
        names = {"/decisions": made["uuid"], "/instances": made["picks"][0]["instance_uuid"]}
        for (path, method), (url, body) in ASKED.items():
            name = names.get(f"/{path.split('/')[1]}", "")
            answered = own.ask(method, url.format(name), body)
            responses = DOCUMENT["paths"][path][method.lower()]["responses"]
            assert str(answered.status) in responses, (path, answered.json)
            content = responses[str(answered.status)].get("content")
            if content is None or "text/event-stream" in content:
                assert answered.body == b""
                continue
            schema = {**content["application/json"]["schema"], "components": DOCUMENT["components"]}
            jsonschema.validate(answered.json, schema)
        refused = own.get("/decisions/none")
        problem = {"$ref": "#/components/schemas/ProblemDetails", "components": DOCUMENT["components"]}
        jsonschema.validate(refused.json, problem)
