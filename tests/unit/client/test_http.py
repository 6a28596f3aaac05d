from contextlib import contextmanager

import pytest

from roost.client.placement_http import Connection
from roost.client.remote_claims import RemotePlacement
from roost.errors import BadSettings, PlacementGone
from tests.support.servers.scripted_server import scripted

VERSIONS = (200, {"versions": [{"max_version": "1.39"}]})


def versioned(*answers, versions=VERSIONS):
    """Serve answers behind the one that tells the versions."""
    return scripted(versions, *answers)


@contextmanager
def connected(address):
    pauses = []
    connection = Connection(address, token="t", timeout_s=10, pause=pauses.append)
    try:
        yield connection, pauses
    finally:
        connection.close()


def test_what_is_answered_503_or_not_at_all_is_asked_again_after_longer_and_longer_pauses():
    with versioned((503, None), None, (200, {"a": 1})) as (address, asked), connected(address) as (connection, pauses):
        assert connection.get("/x?y=1") == {"a": 1}
        assert [path for _, path, _ in asked] == ["/below/", *["/below/x?y=1"] * 3]
        assert pauses == [0.1, 0.4]


def test_what_is_never_answered_is_given_up():
    with versioned(*[(503, None)] * 4) as (address, asked), connected(address) as (connection, pauses):
        with pytest.raises(PlacementGone, match="cannot be used: it answers with status 503"):
            connection.get("/x")
        assert (len(asked), len(pauses)) == (5, 3)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((401, None), "refuses this client: status 401"),
        ((500, {"errors": [{"detail": "it\n broke"}]}), "it answers GET /x with it broke"),
        ((400, b"no JSON"), "it answers /x with status 400"),
        ((200, [1]), "it answers /x with status 200"),
    ],
)
def test_errors_are_one_sentence(answer, sentence):
    with (
        versioned(answer) as (address, _),
        connected(address) as (connection, _),
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
def test_a_server_that_will_not_do_is_refused_at_the_start(versions, sentence):
    with (
        versioned(versions=versions) as (address, _),
        pytest.raises(BadSettings, match=sentence),
        connected(address),
    ):
        pass


@pytest.mark.parametrize(("held", "is_claimed"), [({"VCPU": 1}, True), ({"VCPU": 2}, False)])
def test_a_claim_that_was_carried_out_without_an_answer_is_found_when_it_is_tried_again(held, is_claimed):
    told = {"allocations": {"p": {"resources": held}}, "consumer_generation": 1}
    with versioned(None, (409, None), (200, told)) as (address, asked), connected(address) as (connection, _):
        placement = RemotePlacement(connection)
        assert placement.claim("c", {"p": {"VCPU": 1}}, project_id="", user_id="u") is is_claimed
        body = asked[1][2]
        assert (body["consumer_generation"], body["consumer_type"], body["user_id"]) == (None, "INSTANCE", "u")
        assert len(body["project_id"]) == 36


def test_a_claim_that_is_refused_at_once_is_no_ones_but_the_others():
    with versioned((409, None)) as (address, asked), connected(address) as (connection, _):
        assert not RemotePlacement(connection).claim("c", {"p": {"VCPU": 1}}, project_id="p", user_id="u")
        assert len(asked) == 2


def test_dry_runs_write_nothing():
    with versioned() as (address, asked), connected(address) as (connection, _):
        dry = RemotePlacement(connection).dry()
        assert dry.claim("c", {}, project_id="p", user_id="u")
        assert dry.replace("c", {}, project_id="p", user_id="u")
        dry.release("c")
        assert len(asked) == 1
