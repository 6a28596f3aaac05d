from contextlib import contextmanager

import pytest

from roost.client.placement_http import Connection
from roost.client.remote_claims import RemotePlacement
from roost.errors import BadSettings, Conflict, PlacementGone
from tests.support.servers.scripted_server import scripted_server

VERSIONS = (200, {"versions": [{"max_version": "1.39"}]})


def serve_placement(*answers, versions=VERSIONS):
    """Serve answers, after the answer to the request for versions."""
    return scripted_server(versions, *answers)


@contextmanager
def connect(address):
    pauses = []
    connection = Connection(address, token="t", timeout_s=10, pause=pauses.append)
    try:
        yield connection, pauses
    finally:
        connection.close()


def test_unavailable_server_is_retried_with_growing_pauses():
    with (
        serve_placement((503, None), None, (200, {"a": 1})) as (address, requests),
        connect(address) as (connection, pauses),
    ):
        assert connection.get("/x?y=1") == {"a": 1}
        assert [path for _, path, _ in requests] == ["/below/", *["/below/x?y=1"] * 3]
        assert pauses == [0.1, 0.4]


def test_request_is_abandoned_after_the_last_retry():
    with serve_placement(*[(503, None)] * 4) as (address, requests), connect(address) as (connection, pauses):
        with pytest.raises(PlacementGone, match="cannot be used: it answers with status 503"):
            connection.get("/x")
        assert (len(requests), len(pauses)) == (5, 3)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((401, None), "refuses this client: status 401"),
        ((500, {"errors": [{"detail": "it\n broke"}]}), "it answers GET /x with it broke"),
        ((400, b"no JSON"), "it answers /x with status 400"),
        ((200, [1]), "it answers /x with status 200"),
    ],
)
def test_error_message_is_one_sentence(answer, sentence):
    with (
        serve_placement(answer) as (address, _),
        connect(address) as (connection, _),
        pytest.raises(PlacementGone, match=sentence),
    ):
        connection.get("/x?y")


@pytest.mark.parametrize(
    ("versions", "sentence"),
    [
        ((200, {"versions": [{"max_version": "1.35"}]}), "has microversions up to 1.35, and 1.36 is needed"),
        ((200, {"hello": 1}), "is not a Placement API"),
        ((404, None), "is not a Placement API"),
    ],
)
def test_unsuitable_server_is_refused_at_the_start(versions, sentence):
    with (
        serve_placement(versions=versions) as (address, _),
        pytest.raises(BadSettings, match=sentence),
        connect(address),
    ):
        pass


@pytest.mark.parametrize(("amounts", "is_claimed"), [({"VCPU": 1}, True), ({"VCPU": 2}, False)])
def test_retry_finds_a_claim_whose_answer_was_lost(amounts, is_claimed):
    allocations = {"allocations": {"p": {"resources": amounts}}, "consumer_generation": 1}
    with (
        serve_placement(None, (409, None), (200, allocations)) as (address, requests),
        connect(address) as (connection, _),
    ):
        placement = RemotePlacement(connection)
        assert placement.claim("c", {"p": {"VCPU": 1}}, project_id="", user_id="u") is is_claimed
        body = requests[1][2]
        assert (body["consumer_generation"], body["consumer_type"], body["user_id"]) == (None, "INSTANCE", "u")
        assert len(body["project_id"]) == 36


def test_claim_refused_at_the_first_try_is_not_looked_up():
    with serve_placement((409, None)) as (address, requests), connect(address) as (connection, _):
        assert not RemotePlacement(connection).claim("c", {"p": {"VCPU": 1}}, project_id="p", user_id="u")
        assert len(requests) == 2


def conflict(detail, code="placement.undefined_code"):
    return 409, {"errors": [{"detail": detail, "code": code}]}


OVERTAKEN = conflict("another client changed the provider", "placement.concurrent_update")


def test_claim_overtaken_by_a_change_of_a_provider_is_sent_again_after_short_pauses():
    with (
        serve_placement(*[OVERTAKEN] * 3, (204, None)) as (address, requests),
        connect(address) as (connection, pauses),
    ):
        assert RemotePlacement(connection).claim("c", {"p": {"VCPU": 1}}, project_id="p", user_id="u")
        assert len(requests) == 5
        assert all(0 <= pause_s <= most_s for pause_s, most_s in zip(pauses, (0.05, 0.1, 0.2), strict=True))


def test_claim_overtaken_too_often_fails():
    with serve_placement(*[OVERTAKEN] * 4) as (address, requests), connect(address) as (connection, _):
        assert not RemotePlacement(connection).claim("c", {"p": {"VCPU": 1}}, project_id="p", user_id="u")
        assert len(requests) == 5


def test_claim_without_room_is_not_sent_again():
    answer = conflict("Unable to allocate inventory: over capacity")
    with serve_placement(answer) as (address, requests), connect(address) as (connection, _):
        assert not RemotePlacement(connection).claim("c", {"p": {"VCPU": 1}}, project_id="p", user_id="u")
        assert len(requests) == 2


def test_claim_for_a_consumer_with_allocations_is_a_conflict_of_its_own():
    answer = conflict("consumer generation conflict - expected 3 but got None", "placement.concurrent_update")
    with (
        serve_placement(answer) as (address, requests),
        connect(address) as (connection, _),
        pytest.raises(Conflict, match="the instance c has allocations at the remote Placement already"),
    ):
        RemotePlacement(connection).claim("c", {"p": {"VCPU": 1}}, project_id="p", user_id="u")
    assert len(requests) == 2


def test_dry_runs_write_nothing():
    with serve_placement() as (address, requests), connect(address) as (connection, _):
        dry = RemotePlacement(connection).dry()
        assert dry.claim("c", {}, project_id="p", user_id="u")
        assert dry.replace("c", {}, project_id="p", user_id="u")
        dry.release("c")
        assert len(requests) == 1
