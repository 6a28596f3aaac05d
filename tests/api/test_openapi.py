"""The OpenAPI document describes all requests and responses."""

import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest

from roost.api.v1.documents import openapi
from roost.api.v1.documents.tags import TAGS
from roost.api.v1.routes import TABLE
from roost.model.names import uuid_text
from roost.model.work.change_memory import Drain
from tests.api.agents import ORDER, commit_rows
from tests.support.conductors.work_rows import migration, operation, order, status
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api

RACK = "00000000-0000-4000-8000-000000000001"
DOCUMENT = openapi.document()
OPERATIONS = [(path, method) for path, methods in TABLE.items() for method in methods]
SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}


def references(value):
    """Yield every reference in a document."""
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_references_resolve():
    schemas = DOCUMENT["components"]["schemas"]
    assert {ref.removeprefix("#/components/schemas/") for ref in references(DOCUMENT)} <= set(schemas)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in schemas)


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_operation_is_described(path, method):
    description = DOCUMENT["paths"][path][method.lower()]
    route = TABLE[path][method]
    assert description["summary"] == route.about
    assert ("requestBody" in description) == (route.body is not None)
    parameter_names = {each["name"] for each in description["parameters"]}
    assert set(re.findall(r"{(\w+)}", path)) <= parameter_names
    assert ("Idempotency-Key" in parameter_names) == route.is_keyed
    assert all(each["schema"].get("description", "-") for each in description["parameters"])


def test_operation_ids_are_unique():
    names = [each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()]
    assert len(set(names)) == len(names) == len(OPERATIONS)


STOPPED, RUNNING = (status(number, status=word, task="") for number, word in ((1, "SHUTOFF"), (2, "ACTIVE")))
ON_LIVE_HOST, ON_LOST_HOST = (
    status(number, status="ACTIVE", task="", host=host, node=host) for number, host in ((3, "host-0"), (4, "host-9"))
)
MOVE = migration(1, kind="live", status="failed", source_host="host-0")
# Instances to change or move, by operation.
BY_OPERATION = {
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
BODIES = {"rebuild": {}, "migrate": {}, "revert": {"lost": False}, "resize": {"flavor": {"name": "large", "vcpus": 2}}}
DRAIN_OPERATION = operation(
    3, kind="drain", step="move", body=msgspec.msgpack.encode(Drain(host="host-1", instances=(), at_once=1))
)
STOP_OPERATION = operation(2, kind="stop", outcome="done")

# The request for each path; an empty brace stands for the first decision or its instance.
REQUESTS = {
    ("/decisions", "POST"): ("/decisions", SMALL),
    ("/decisions", "GET"): ("/decisions", None),
    ("/changes", "GET"): ("/changes", None),
    ("/decisions/{id}", "GET"): ("/decisions/{}", None),
    ("/decisions/{id}/why", "GET"): ("/decisions/{}/why", None),
    ("/decisions/{id}/replay", "POST"): ("/decisions/{}/replay", {"under": "current"}),
    ("/decisions/{id}/next", "POST"): ("/decisions/{}/next", {}),
    ("/instances", "POST"): ("/instances", {**SMALL, "name": "web"}),
    ("/instances", "GET"): ("/instances", None),
    ("/instances/{id}", "GET"): ("/instances/{}", None),
    ("/instances/{id}", "DELETE"): ("/instances/{}", None),
    ("/instances/{id}/start", "POST"): (f"/instances/{uuid_text(STOPPED.uuid)}/start", None),
    ("/instances/{id}/stop", "POST"): (f"/instances/{uuid_text(RUNNING.uuid)}/stop", None),
    ("/instances/{id}/live-migrate", "POST"): (
        f"/instances/{uuid_text(ON_LIVE_HOST.uuid)}/live-migrate",
        {"host": "host-1"},
    ),
    ("/instances/{id}/evacuate", "POST"): (f"/instances/{uuid_text(ON_LOST_HOST.uuid)}/evacuate", {}),
    ("/migrations", "GET"): ("/migrations?status=failed&source=HOST-0", None),
    ("/migrations/{uuid}", "GET"): (f"/migrations/{uuid_text(MOVE.uuid)}", None),
    **{
        (f"/instances/{{id}}/{kind}", "POST"): (f"/instances/{uuid_text(row.uuid)}/{kind}", BODIES.get(kind))
        for kind, row in BY_OPERATION.items()
    },
    ("/operations", "GET"): ("/operations?outcome=done", None),
    ("/operations/{id}/pause", "POST"): (f"/operations/{uuid_text(DRAIN_OPERATION.uuid)}/pause", None),
    ("/operations/{id}/resume", "POST"): (f"/operations/{uuid_text(DRAIN_OPERATION.uuid)}/resume", None),
    ("/operations/{id}", "DELETE"): (f"/operations/{uuid_text(DRAIN_OPERATION.uuid)}", None),
    ("/operations/{id}", "GET"): (f"/operations/{uuid_text(STOP_OPERATION.uuid)}", None),
    ("/explanations", "POST"): ("/explanations", SMALL),
    ("/comparisons", "POST"): (
        "/comparisons",
        {
            "sets": [
                {"name": "in force"},
                {"name": "pack", "settings": {"filter_scheduler": {"ram_weight_multiplier": -1.0}}},
            ],
            "newest": 10,
        },
    ),
    ("/plans/make-room", "POST"): ("/plans/make-room", {"request": SMALL}),
    ("/plans/consolidate", "POST"): ("/plans/consolidate", {"hosts": 1}),
    ("/plans/drain", "POST"): ("/plans/drain", {"hosts": ["host-2"], "extra": 5}),
    ("/plans/balance", "POST"): ("/plans/balance", {"resource_class": "MEMORY_MB", "moves": 5}),
    ("/plans/apply", "POST"): (
        "/plans/apply",
        {
            "moves": [
                {
                    "number": 1,
                    "instance_uuid": "00000000-0000-4000-8000-000000000e21",
                    "source": "host-0",
                    "target": "host-1",
                }
            ],
            "dry_run": True,
        },
    ),
    ("/refusals", "GET"): ("/refusals?since=1.5", None),
    ("/status", "GET"): ("/status", None),
    ("/fleet", "GET"): ("/fleet", None),
    ("/settings", "GET"): ("/settings", None),
    ("/fleet/columns", "GET"): ("/fleet/columns", None),
    ("/fleet/names", "GET"): ("/fleet/names?generation=0", None),
    ("/audit", "GET"): ("/audit", None),
    ("/events", "GET"): ("/events", None),
    ("/capacity", "GET"): ("/capacity?flavor=small&by=zone", None),
    ("/capacity", "POST"): ("/capacity", {"request": SMALL}),
    ("/capacity/columns", "GET"): ("/capacity/columns?flavor=small", None),
    ("/capacity/columns", "POST"): ("/capacity/columns", {"request": SMALL}),
    ("/aggregates", "POST"): ("/aggregates", {"name": "rack", "uuid": RACK}),
    ("/aggregates", "GET"): ("/aggregates", None),
    ("/aggregates/{uuid}", "GET"): (f"/aggregates/{RACK}", None),
    ("/aggregates/{uuid}", "PATCH"): (f"/aggregates/{RACK}", {"availability_zone": "east"}),
    ("/aggregates/{uuid}/ratios", "POST"): (f"/aggregates/{RACK}/ratios", {"cpu_allocation_ratio": 8}),
    ("/aggregates/{uuid}/hosts/{host}", "PUT"): (f"/aggregates/{RACK}/hosts/host-0", None),
    ("/zones", "GET"): ("/zones", None),
    ("/history", "GET"): ("/history?since=1700000000&until=1700007200&points=2", None),
    ("/hosts", "GET"): ("/hosts", None),
    ("/hosts/{host}", "GET"): ("/hosts/host-0", None),
    ("/hosts/{host}/providers", "GET"): ("/hosts/host-0/providers", None),
    ("/hosts/{host}/events", "GET"): ("/hosts/host-0/events", None),
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
    ("/groups/{uuid}", "DELETE"): (f"/groups/{RACK}", None),
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
    ("/session", "POST"): ("/session", None),
    ("/session", "GET"): ("/session", None),
    ("/session", "DELETE"): ("/session", None),
    ("/decisions/batch", "POST"): ("/decisions/batch", {"requests": [{"request": SMALL}]}),
}


EXAMPLES_FILE = Path(openapi.__file__).with_name("openapi_examples.json")
EXAMPLES = json.loads(EXAMPLES_FILE.read_text(encoding="utf-8"))
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_FIXED = "00000000-0000-4000-8000-"


def steady(value, uuids, key=""):
    """Return an example with equal UUIDs, times and durations in each run."""
    if isinstance(value, dict):
        return {steady(name, uuids): steady(each, uuids, name) for name, each in value.items()}
    if isinstance(value, list):
        return [steady(each, uuids, key) for each in value]
    if key == "seed":
        return 1
    if key == "key":
        return "A" * 43
    if isinstance(value, float) and (key.endswith("_s") or key == "now"):
        return 1790000000.5 if value > 1e9 else 0.001 if 0 < value < 1 else value
    if isinstance(value, str):
        return _UUID.sub(lambda match: uuids.setdefault(match[0], f"{_FIXED}{len(uuids) + 0xE00:012x}"), value)
    return value


@pytest.fixture
def examples(request):
    """Collects an exchange for each operation; `make golden` writes them into the file of examples."""
    collected = {}
    yield collected
    if request.config.getoption("--golden-rewrite"):
        uuids = {RACK: RACK}
        text = json.dumps(steady(collected, uuids), indent=1, ensure_ascii=False)
        EXAMPLES_FILE.write_text(text + "\n", encoding="utf-8")


def test_every_operation_has_a_tag_with_a_description():
    assert [each["name"] for each in DOCUMENT["tags"]] == list(TAGS)
    assert all(each["description"].endswith(".") for each in DOCUMENT["tags"])
    used = {tag for methods in DOCUMENT["paths"].values() for each in methods.values() for tag in each["tags"]}
    assert used == set(TAGS), "add the noun to TAGS or _OTHERS in src/roost/api/v1/documents/tags.py"


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_bodies_have_examples_that_match_their_schemas(path, method):
    description = DOCUMENT["paths"][path][method.lower()]
    bodies = [description["requestBody"]] if "requestBody" in description else []
    bodies.append(description["responses"][str(TABLE[path][method].status)])
    contents = [content for body in bodies for kind, content in body.get("content", {}).items() if "json" in kind]
    for content in contents:
        assert "example" in content, f"no example of {method} {path}: run `make golden`, then this test again"
        jsonschema.validate(content["example"], {**content["schema"], "components": DOCUMENT["components"]})


def audit(folder):
    """Return the response to an audit of a database that has tables."""
    with roost_api(fleet(1, vcpus=4), url=f"sqlite:///{folder}/roost.db") as own:
        return own.get("/audit").json


def test_responses_match_the_document(examples, request, tmp_path):
    assert set(REQUESTS) == set(OPERATIONS)
    with roost_api(fleet(3, vcpus=4)) as own:
        commit_rows(
            own, operation(1), STOP_OPERATION, STOPPED, RUNNING, order(1, host="host-0", action="destroy", body=ORDER)
        )
        decision = own.post("/decisions", SMALL).json
        numbers = own.in_thread(lambda roost: {kind: number for (kind, _), number in roost.state.documents.items()})
        ids = {"flavor_id": numbers["flavor"], "request_id": numbers["request"]}
        commit_rows(
            own,
            MOVE,
            DRAIN_OPERATION,
            *(msgspec.structs.replace(each, **ids) for each in (ON_LIVE_HOST, ON_LOST_HOST, *BY_OPERATION.values())),
        )
        names = {"/decisions": decision["uuid"], "/instances": decision["picks"][0]["instance_uuid"]}
        for (path, method), (url, body) in REQUESTS.items():
            name = names.get(f"/{path.split('/')[1]}", "")
            response = own.ask(method, url.format(name), body)
            responses = DOCUMENT["paths"][path][method.lower()]["responses"]
            status = str(response.status)
            if path == "/audit":  # This database is in memory, and has no tables.
                assert status == "409"
                status = "default"
            if path in {"/fleet/columns", "/fleet/names"}:  # Only servers have snapshots.
                assert status == "409"
                status = "default"
            assert status in responses, (path, response.json)
            content = responses[status].get("content")
            if body is not None:
                examples[f"{method} {path}"] = {"request": body}
            if content is None or "text/event-stream" in content:
                assert response.body == b""
                continue
            ((kind, described),) = content.items()
            if kind == "application/octet-stream":
                assert response.body.startswith(b"RFS1")
                continue
            schema = {**described["schema"], "components": DOCUMENT["components"]}
            jsonschema.validate(response.json, schema)
            if status != "default":
                examples.setdefault(f"{method} {path}", {})["response"] = response.json
        examples["GET /audit"] = {"response": audit(tmp_path)}
        refused = own.get("/decisions/none")
        problem = {"$ref": "#/components/schemas/ProblemDetails", "components": DOCUMENT["components"]}
        jsonschema.validate(refused.json, problem)
    if not request.config.getoption("--golden-rewrite"):
        assert {name: outline(each) for name, each in examples.items()} == {
            name: outline(each) for name, each in EXAMPLES.items()
        }, "run `make golden`"


def outline(exchange):
    """Return the request of an exchange, and the names of the fields of its response."""
    return exchange.get("request"), sorted(exchange.get("response", ()))
