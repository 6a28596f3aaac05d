"""Batches of decisions over HTTP: equal to single decisions, one commit, errors of single requests."""

import random
import re

import pytest

from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.servers import ADMIN, serve

SMALL = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 16}}
FIELDS = ("outcome", "reason", "count", "found", "picks", "alternates", "scores", "stages", "warnings", "project_id")


@pytest.fixture
def servers(tmp_path):
    """Two servers with equal fleets; the first is for batches."""
    for name in ("batches", "singles"):
        with open_roost(None, tmp_path / name) as roost:
            roost.install(fleet(4, vcpus=12))
    with (
        serve(noun="up", folder=tmp_path / "batches") as first,
        serve(noun="up", folder=tmp_path / "singles") as second,
    ):
        yield first, second


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with room for all tests of this module."""
    folder = tmp_path_factory.mktemp("batches")
    with open_roost(None, folder) as roost:
        roost.install(fleet(4, vcpus=100))
    with serve(noun="up", folder=folder) as running:
        yield running


def send_batch(server, *entries, headers=ADMIN):
    """Send a batch; return its answers."""
    status, _, body = server.ask("POST", "/v1/decisions/batch", {"requests": list(entries)}, headers=headers)
    assert status == 200, body
    return body["answers"]


def send_single(server, entry):
    """Send a request of a batch alone; return its answer as a batch has it."""
    key = entry.get("idempotency_key")
    headers = ADMIN if key is None else ADMIN | {"idempotency-key": key}
    status, received, body = server.ask("POST", "/v1/decisions", entry["request"], headers=headers)
    is_error = status >= 400
    return {
        "status": status,
        "replayed": "idempotency-replayed" in received,
        "decision": None if is_error else body,
        "problem": body if is_error else None,
    }


def comparable(answer):
    """Return an answer without its times, ids and feed position."""
    decision, problem = answer["decision"], answer["problem"]
    if problem is not None:
        return {**answer, "problem": {**problem, "request_id": ""}}
    fields = {name: decision[name] for name in FIELDS}
    for pick in fields["picks"]:  # Without a key, its uuid is random.
        assert pick.pop("instance_uuid")
    return {**answer, "decision": fields}


def random_entry(chance, number):
    """Return a request that is granted, refused, invalid or repeated."""
    request = chance.choice(
        [
            SMALL,
            SMALL | {"count": 2},
            {"flavor": {"name": "large", "vcpus": chance.choice([3, 100]), "memory_mb": 16}},
            {"flavor": "unknown"},
            {"flavor": {"vcpus": "two"}},
            SMALL | {"force_hosts": [f"host-{chance.randrange(6)}"]},
            SMALL | {"hints": {"unread": "x"}, "strict": True},
            SMALL | {"surplus": 1},
            [],
        ]
    )
    key = chance.choice([None, f"key-{number}", f"key-{number}", f"key-{chance.randrange(20)}", "", "x" * 256])
    return {"request": request} | ({} if key is None else {"idempotency_key": key})


def test_batch_is_answered_like_its_requests_one_by_one(servers):
    """The fleet fills up, so later requests are refused; some keys repeat, within a batch and across batches."""
    batches, singles = servers
    chance, statuses = random.Random(7), set()
    for number in range(12):
        entries = [random_entry(chance, number) for _ in range(chance.choice([1, 5, 30]))]
        answers = send_batch(batches, *entries)
        expected = [send_single(singles, entry) for entry in entries]
        assert list(map(comparable, answers)) == list(map(comparable, expected))
        statuses |= {(answer["status"], answer["replayed"]) for answer in answers}
    assert {(201, False), (201, True), (400, False), (422, False)} <= statuses
    used = [server.ask("GET", "/v1/status")[2]["resources"] for server in servers]
    assert used[0] == used[1]
    assert batches.problems == []


def test_batch_is_one_commit(server):
    def count_sharing():
        """Return the number of writes that shared the commit of another one; the server also commits on its own."""
        text = server.ask("GET", "/metrics")[2].decode()
        sizes = dict(re.findall(r"^roost_commit_size_(count|sum) (\S+)$", text, re.MULTILINE))
        return float(sizes["sum"]) - float(sizes["count"])

    before = count_sharing()
    answers = send_batch(server, *[{"request": SMALL}] * 40)
    after = count_sharing()
    assert {answer["decision"]["outcome"] for answer in answers} == {"granted"}
    assert after - before == 39


@pytest.mark.parametrize("count", [0, 257])
def test_batch_has_a_limited_number_of_requests(server, count):
    body = {"requests": [{"request": SMALL}] * count}
    status, _, problem = server.ask("POST", "/v1/decisions/batch", body)
    assert (status, problem["field"]) == (400, "$.requests")
    assert len(send_batch(server, *[{"request": SMALL | {"count": 401}}] * 256)) == 256


def test_dry_run_in_a_batch_is_refused(server):
    tried, decided = send_batch(server, {"request": SMALL | {"dry_run": True}}, {"request": SMALL})
    assert (tried["status"], tried["problem"]["field"]) == (400, "$.dry_run")
    assert decided["status"] == 201


def test_batch_needs_the_policy_of_a_decision(server):
    reader = {"x-auth-token": "bob", "x-roles": "reader", "content-type": "application/json"}
    status, _, problem = server.ask("POST", "/v1/decisions/batch", {"requests": [{"request": SMALL}]}, headers=reader)
    assert (status, problem["detail"].split(" does")[0]) == (403, "policy roost:decisions:create")


def test_body_of_a_batch_is_json(server):
    plain = ADMIN | {"content-type": "text/plain"}
    assert server.ask("POST", "/v1/decisions/batch", b"{}", headers=plain)[0] == 415
    assert server.ask("POST", "/v1/decisions/batch?x=1", {"requests": []})[0] == 400
    assert server.ask("GET", "/v1/decisions/batch")[0] == 405


def test_each_decision_of_a_batch_is_a_change(server):
    answers = send_batch(server, {"request": SMALL}, {"request": {"flavor": "unknown"}}, {"request": SMALL})
    changes = server.ask("GET", "/v1/changes")[2]["changes"]
    uuids = {answer["decision"]["uuid"] for answer in answers if answer["decision"]}
    assert uuids <= {change["object"] for change in changes if change["kind"] == "decision.create"}
    assert len(uuids) == 2
