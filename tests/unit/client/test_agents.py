"""The server as an agent asks it: what each answer means to it, and that it is asked until it answers."""

import json
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from threading import Barrier, Event

import msgspec
import pytest

from roost.client.agent_server import HttpServer, InstanceLookup
from roost.errors import BadRequest, BadSettings, Conflict, NotFound, Unavailable
from roost.model.host import HostFacts
from roost.model.work.orders import (
    Acknowledgement,
    Order,
    OrderAnswer,
    Poll,
    PollAnswer,
    PollingAgent,
    Power,
    Registration,
    RegistrationAnswer,
)
from roost.model.work.standing import Standing, Standings
from tests.support.fleets.named_uuids import uuid_named
from tests.support.servers.scripted_server import scripted

RUN = uuid_named("run")
REGISTRATION = Registration(run=RUN, driver="fake", nodes=())
REGISTERED = RegistrationAnswer(fence=3, is_ready=True, down_after_s=60.0)
POLL = Poll(agents=(PollingAgent(host="h", run=RUN, fence=3),))
OK = OrderAnswer(run=RUN, outcome="ok")


@contextmanager
def asked_of(*answers, tries=99):
    """Give what asks a server of these answers, what it is asked, and the pauses, so many at most."""
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        return len(pauses) < tries

    with scripted(*answers) as (address, asked):
        server = HttpServer(address, token="t", draw=lambda: 0.5, pause=pause)
        try:
            yield server, asked, pauses
        finally:
            server.close()


def told(value, status=200):
    return status, msgspec.json.encode(value)


def problem(status, detail):
    return status, {"status": status, "detail": detail}


def test_questions_and_answers_are_those_of_the_api():
    order = Order(id=7, host="h", operation=RUN, number=1, act=Power(is_on=False), limit_s=9.0)
    answers = (
        told(REGISTERED),
        (204, None),
        told(PollAnswer(orders=(order,))),
        told(Acknowledgement(is_wanted=True)),
        (204, None),
    )
    known = Standings(instances={RUN: Standing(is_deleted=True)})
    with asked_of(*answers, told(known)) as (server, asked, _):
        assert server.register("a b", REGISTRATION) == REGISTERED
        server.report("a b", "n/1", HostFacts(num_io_ops=1))
        assert server.poll(POLL).orders == (order,)
        server.answer(7, OK)
        server.deregister("a b")
        assert InstanceLookup(server, "a b").standings([RUN]) == known.instances
        agents = "/below/v1/agents/a%20b"
        assert [(method, path) for method, path, _ in asked] == [
            ("PUT", agents),
            ("PUT", f"{agents}/nodes/n%2F1?run={RUN}"),
            ("POST", "/below/v1/orders/poll"),
            ("POST", "/below/v1/orders/7/answer"),
            ("DELETE", f"{agents}?run={RUN}"),
            ("POST", f"{agents}/standings"),
        ]
        assert [body for *_, body in asked[:2]] == [json.loads(msgspec.json.encode(REGISTRATION)), {"num_io_ops": 1}]


def test_what_is_not_answered_is_asked_again_after_pauses_that_double_up_to_a_bound(capfd):
    away = [(503, None), None, (500, None), (200, b"no JSON"), (200, b"{}"), (502, b"<html>")] + 2 * [(503, None)]
    # These come from what stands before a server, which has not heard of the question then.
    away += [(429, None), (302, None), (408, None), (405, b"<html>")]
    with asked_of(*away, told(REGISTERED)) as (server, asked, pauses):
        assert server.register("h", REGISTRATION) == REGISTERED
        assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0] + 6 * [15.0]
        assert len({str(each) for each in asked}) == 1
    said = capfd.readouterr().err
    assert (said.count('"event":"server_is_away"'), said.count('"event":"server_is_back"')) == (1, 1)


def test_a_server_that_is_away_for_many_questions_is_told_once_and_is_back_with_the_last_answer(capfd):
    both, go_on = Barrier(2), Event()

    def pause(_seconds):
        return both.wait(10) == 0 or go_on.wait(10)  # One goes on at once, the other when it may.

    with (
        scripted((503, None), (503, None), problem(409, "another run"), told(REGISTERED)) as (address, _),
        ThreadPoolExecutor() as pool,
    ):
        server = HttpServer(address, token=None, draw=lambda: 0.5, pause=pause)
        asked = [pool.submit(server.register, host, REGISTRATION) for host in ("h0", "h1")]
        first = next(as_completed(asked, timeout=10))
        said = capfd.readouterr().err
        assert isinstance(first.exception(), Conflict)
        assert (said.count('"event":"server_is_away"'), said.count('"event":"server_is_back"')) == (1, 0)
        go_on.set()
        wait(asked, timeout=10)
        server.close()
    assert capfd.readouterr().err.count('"event":"server_is_back"') == 1


def test_pauses_are_shorter_or_longer_by_half_at_most():
    for drawn, least in ((0.0, 0.25), (0.999, 0.7495)):
        with scripted((503, None), told(REGISTERED)) as (address, _):
            pauses = []
            server = HttpServer(
                address, token=None, draw=lambda drawn=drawn: drawn, pause=lambda s, to=pauses: to.append(s) or True
            )
            server.register("h", REGISTRATION)
            server.close()
        assert pauses == [least]


def test_an_agent_that_is_to_stop_asks_no_more(capfd):
    with (
        asked_of((503, None), (503, None), tries=2) as (server, asked, _),
        pytest.raises(Unavailable, match="did not answer: status 503"),
    ):
        server.poll(POLL)
    assert len(asked) == 2
    assert "server_is_back" not in capfd.readouterr().err


def test_a_connection_that_was_closed_meanwhile_is_opened_again_at_once():
    with asked_of(told(REGISTERED), None, told(PollAnswer())) as (server, asked, pauses):
        server.register("h", REGISTRATION)
        assert server.poll(POLL) == PollAnswer()
        assert (len(asked), pauses) == (3, [])


@pytest.mark.parametrize(
    ("answer", "kind", "sentence"),
    [
        (problem(401, "say who you are"), BadSettings, "say who you are"),
        (problem(403, "this token may only touch host a, not h"), BadSettings, "may only touch host a, not h"),
        (problem(404, "no such agent: h"), NotFound, "no such agent: h"),
        (problem(409, "there is no provider n"), Conflict, "there is no provider n"),
        (problem(400, "$.numa: must be"), BadRequest, r"\$\.numa: must be"),
        ((413, b"too\nlong"), BadRequest, "status 413"),
    ],
)
def test_each_answer_says_what_the_agent_is_to_do(answer, kind, sentence):
    with asked_of(answer) as (server, _, pauses):
        with pytest.raises(kind, match=sentence):
            server.report("h", "n", HostFacts())
        assert pauses == []


def test_a_server_without_agents_is_none():
    with asked_of((404, None)) as (server, *_), pytest.raises(BadSettings, match="it is not a Roost server"):
        server.register("h", REGISTRATION)


def test_who_was_let_in_is_not_sent_away_by_what_stands_before_the_server():
    strange = [(404, b"<html>"), (403, None), (401, b"{}"), (404, [])]
    with asked_of(told(REGISTERED), *strange, told(REGISTERED), problem(404, "no such agent: h")) as (
        server,
        _,
        pauses,
    ):
        server.register("h", REGISTRATION)
        assert server.register("h", REGISTRATION) == REGISTERED
        assert len(pauses) == len(strange)
        with pytest.raises(NotFound, match="no such agent: h"):
            server.report("h", "n", HostFacts())


def test_an_answer_that_nobody_wants_is_undone_and_one_of_an_old_run_ends_the_agent():
    with asked_of(told(Acknowledgement(is_wanted=False)), problem(409, "by another run")) as (server, *_):
        with pytest.raises(Conflict, match="the order 7 was withdrawn: undo"):
            server.answer(7, OK)
        with pytest.raises(BadSettings, match="by another run"):
            server.answer(7, OK)


@pytest.mark.parametrize(
    "url", ["ftp://h", "h:1", "http://", "http://a b", "http://h:99999", "http://a..b", "http://h/ä"]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(BadSettings, match=r"agent\.server: must be http://HOST:PORT"):
        HttpServer(url, token=None, draw=lambda: 0.0, pause=lambda _: True)


@pytest.mark.parametrize("token", ["a secret\n", "secret €"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(token):
    with pytest.raises(BadSettings, match="x-auth-token: has a character that no header can hold") as error:
        HttpServer("http://h", token=token, draw=lambda: 0.0, pause=lambda _: True)
    assert "secret" not in str(error.value)
