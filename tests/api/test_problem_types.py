"""Errors of /v1 have stable types, which the server explains."""

import re

import pytest

from roost import errors
from roost.api import problems
from roost.api.problems import Problem
from roost.api.v1.wire.problem_types import TYPES, type_of
from tests.support.fleets.products import ROOT, fleet
from tests.support.servers.in_process_api import roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}
NOWHERE = "00000000-0000-4000-8000-000000000009"
READER = {"x-roles": "reader", "x-auth-token": "joe:web"}


@pytest.fixture(scope="module")
def own():
    with roost_api(fleet(2, vcpus=4)) as own:
        yield own


def name_of(response):
    """Return the name in the type of an error."""
    return response.json["type"].removeprefix("/v1/errors#")


def test_server_explains_all_types_without_authentication(own):
    response = own.get("/errors", headers={"x-auth-token": ""})
    entries = response.json["problem_types"]
    assert (response.status, [each["type"] for each in entries]) == (200, [f"/v1/errors#{name}" for name in TYPES])
    by_type = {each["type"]: each for each in entries}
    refused = own.get("/decisions/none").json
    entry = by_type[refused["type"]]
    assert {name: refused[name] for name in ("status", "title")} == {name: entry[name] for name in ("status", "title")}


def test_document_lists_all_types():
    text = (ROOT / "docs" / "api-v1.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \| (.+) \|$", text, re.MULTILINE)
    assert [(name, int(status), explanation) for name, status, explanation in rows] == [
        (name, status, explanation) for name, (status, explanation) in TYPES.items()
    ]


def test_every_type_in_the_source_is_explained():
    pattern = re.compile(r'problem_type ?= ?"([^"]*)"')
    files = (ROOT / "src" / "roost").rglob("*.py")
    used = {name for path in files for name in pattern.findall(path.read_text())}
    assert used - {""} <= set(TYPES)
    assert len(used) > 10


def test_every_error_that_has_a_status_has_a_type():
    with_status = {400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 421, 422, 431, 500, 503}
    assert {status for status, _ in TYPES.values()} == with_status
    for status in with_status:
        name = type_of(Problem(status)).removeprefix("/v1/errors#")
        assert TYPES[name][0] == status


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (errors.Conflict("lost"), "conflict"),
        (errors.race_conflict("lost"), "lost-race"),
        (errors.NoValidHost("full"), "no-valid-host"),
        (errors.StateLost("d", "gone"), "state-lost"),
        (errors.OverBudget("work", seconds=1, limit="l"), "over-budget"),
        (errors.StoreGone("no answer"), "database-unavailable"),
        (errors.StoreReplaced("restored"), "database-unavailable"),
        (errors.PlacementGone("no answer"), "placement-unavailable"),
        (errors.Unavailable("busy"), "unavailable"),
        (errors.BadRequest("no"), "bad-request"),
        (ValueError("a bug"), "server-fault"),
        (Problem(418), "bad-request"),
        (Problem(504), "server-fault"),
    ],
)
def test_type_of_an_error(error, name):
    assert type_of(problems.problem_of(error)) == f"/v1/errors#{name}"


def test_types_of_refused_requests(own):
    decision = own.post("/decisions", SMALL, headers={"idempotency-key": "k"}).json
    uuid, instance = decision["uuid"], decision["picks"][0]["instance_uuid"]
    large = {"flavor": {"name": "large", "vcpus": 4, "memory_mb": 16}}
    dry_run = own.post("/decisions", {**large, "dry_run": True}).json["check_index"]
    for _ in range(2):
        own.post("/decisions", SMALL)
    refused = {
        "invalid-field": own.post("/decisions", {"flavor": 1}),
        "missing-reference": own.post("/decisions", {"flavor": "none"}),
        "unauthenticated": own.get("/hosts", headers={"x-auth-token": ""}),
        "forbidden": own.get("/hosts", headers=READER),
        "not-found": own.get("/hosts/none"),
        "method-not-allowed": own.delete("/hosts"),
        "already-exists": own.post("/decisions", {**SMALL, "instance_uuids": [instance]}),
        "choice-changed": own.post("/decisions", {**large, "check_index": dry_run}),
        "wrong-status": own.post(f"/instances/{instance}/stop"),
        "unsupported-media-type": own.post("/decisions", SMALL, headers={"content-type": "text/plain"}),
        "key-reused": own.post("/decisions", {**SMALL, "count": 2}, headers={"idempotency-key": "k"}),
        "not-supported": own.get("/audit"),
    }
    assert {name: name_of(response) for name, response in refused.items()} == {name: name for name in refused}
    for _ in range(2):
        moved = own.post(f"/decisions/{uuid}/next", {})
    assert name_of(moved) == "no-alternate"
    assert name_of(own.get(f"/decisions/{NOWHERE}")) == "not-found"
