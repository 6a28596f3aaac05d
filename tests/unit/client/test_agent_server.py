"""The HTTP client of an agent: errors by status, and retries."""

import json
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from threading import Barrier, Event

import msgspec
import pytest

from roost.client.agent_server import HttpServer, InstanceLookup
from roost.client.agent_token import AgentToken
from roost.client.server_list import ServerList
from roost.errors import AccessDenied, BadRequest, BadSettings, Conflict, NotFound, Unavailable
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
from tests.support.servers.scripted_server import scripted_server

RUN = uuid_named("run")
REGISTRATION = Registration(run=RUN, driver="fake", nodes=())
REGISTERED = RegistrationAnswer(fence=3, is_ready=True, down_after_s=60.0)
POLL = Poll(agents=(PollingAgent(host="h", run=RUN, fence=3),))
OK = OrderAnswer(run=RUN, outcome="ok")


@contextmanager
def client_of(*answers, tries=99):
    """Yield a client of a server with these answers, the requests, and the pauses, ``tries`` at most."""
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        return len(pauses) < tries

    with scripted_server(*answers) as (address, requests):
        server = HttpServer(ServerList([address], setting="agent.servers"), token="t", draw=lambda: 0.5, pause=pause)
        try:
            yield server, requests, pauses
        finally:
            server.close()


def ok(value, status=200):
    return status, msgspec.json.encode(value)


def problem(status, detail):
    return status, {"status": status, "detail": detail}


def test_requests_and_answers_follow_the_api():
    order = Order(id=7, host="h", operation=RUN, number=1, act=Power(is_on=False), limit_s=9.0)
    answers = (
        ok(REGISTERED),
        (204, None),
        ok(PollAnswer(orders=(order,))),
        ok(Acknowledgement(is_wanted=True)),
        (204, None),
    )
    known = Standings(instances={RUN: Standing(is_deleted=True)})
    with client_of(*answers, ok(known)) as (server, requests, _):
        assert server.register("a b", REGISTRATION) == REGISTERED
        server.report("a b", "n/1", HostFacts(num_io_ops=1))
        assert server.poll(POLL).orders == (order,)
        server.answer(7, OK)
        server.deregister("a b")
        assert InstanceLookup(server, "a b").standings([RUN]) == known.instances
        agents = "/below/v1/agents/a%20b"
        assert [(method, path) for method, path, _ in requests] == [
            ("PUT", agents),
            ("PUT", f"{agents}/nodes/n%2F1?run={RUN}"),
            ("POST", "/below/v1/orders/poll"),
            ("POST", "/below/v1/orders/7/answer"),
            ("DELETE", f"{agents}?run={RUN}"),
            ("POST", f"{agents}/standings"),
        ]
        assert [body for *_, body in requests[:2]] == [json.loads(msgspec.json.encode(REGISTRATION)), {"num_io_ops": 1}]


def test_failed_requests_are_retried_with_bounded_exponential_backoff(capfd):
    failures = [(503, None), None, (500, None), (200, b"no JSON"), (200, b"{}"), (502, b"<html>")] + 2 * [(503, None)]
    # These come from a proxy; the server has not received the request.
    failures += [(429, None), (302, None), (408, None), (405, b"<html>")]
    with client_of(*failures, ok(REGISTERED)) as (server, requests, pauses):
        assert server.register("h", REGISTRATION) == REGISTERED
        assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0] + 6 * [15.0]
        assert len({str(each) for each in requests}) == 1
    log = capfd.readouterr().err
    assert (log.count('"event":"server_is_away"'), log.count('"event":"server_is_back"')) == (1, 1)


def test_outage_of_several_requests_is_logged_once_until_the_last_answer(capfd):
    both, release = Barrier(2), Event()

    def pause(_seconds):
        return both.wait(10) == 0 or release.wait(10)  # One continues at once, the other after the event.

    with (
        scripted_server((503, None), (503, None), problem(409, "another run"), ok(REGISTERED)) as (address, _),
        ThreadPoolExecutor() as pool,
    ):
        server = HttpServer(ServerList([address], setting="agent.servers"), token=None, draw=lambda: 0.5, pause=pause)
        futures = [pool.submit(server.register, host, REGISTRATION) for host in ("h0", "h1")]
        first = next(as_completed(futures, timeout=10))
        log = capfd.readouterr().err
        assert isinstance(first.exception(), Conflict)
        assert (log.count('"event":"server_is_away"'), log.count('"event":"server_is_back"')) == (1, 0)
        release.set()
        wait(futures, timeout=10)
        server.close()
    assert capfd.readouterr().err.count('"event":"server_is_back"') == 1


def test_pauses_are_jittered_by_half_at_most():
    for fraction, shortest in ((0.0, 0.25), (0.999, 0.7495)):
        with scripted_server((503, None), ok(REGISTERED)) as (address, _):
            pauses = []
            server = HttpServer(
                ServerList([address], setting="agent.servers"),
                token=None,
                draw=lambda fraction=fraction: fraction,
                pause=lambda s, to=pauses: to.append(s) or True,
            )
            server.register("h", REGISTRATION)
            server.close()
        assert pauses == [shortest]


def test_stopping_agent_sends_no_more_requests(capfd):
    with (
        client_of((503, None), (503, None), tries=2) as (server, requests, _),
        pytest.raises(Unavailable, match="did not answer: status 503"),
    ):
        server.poll(POLL)
    assert len(requests) == 2
    assert "server_is_back" not in capfd.readouterr().err


def test_closed_connection_is_reopened_at_once():
    with client_of(ok(REGISTERED), None, ok(PollAnswer())) as (server, requests, pauses):
        server.register("h", REGISTRATION)
        assert server.poll(POLL) == PollAnswer()
        assert (len(requests), pauses) == (3, [])


@pytest.mark.parametrize(
    ("answer", "kind", "sentence"),
    [
        (problem(401, "say who you are"), AccessDenied, "say who you are"),
        (problem(403, "this token may only touch host a, not h"), AccessDenied, "may only touch host a, not h"),
        (problem(404, "no such agent: h"), NotFound, "no such agent: h"),
        (problem(409, "there is no provider n"), Conflict, "there is no provider n"),
        (problem(400, "$.numa: must be"), BadRequest, r"\$\.numa: must be"),
        ((413, b"too\nlong"), BadRequest, "status 413"),
    ],
)
def test_each_error_status_raises_its_own_error(answer, kind, sentence):
    with client_of(answer) as (server, _, pauses):
        with pytest.raises(kind, match=sentence):
            server.report("h", "n", HostFacts())
        assert pauses == []


def test_server_without_the_agent_api_is_refused():
    with client_of((404, None)) as (server, *_), pytest.raises(BadSettings, match="it is not a Roost server"):
        server.register("h", REGISTRATION)


def test_errors_of_a_proxy_do_not_end_a_registered_agent():
    proxy_errors = [(404, b"<html>"), (403, None), (401, b"{}"), (404, [])]
    with client_of(ok(REGISTERED), *proxy_errors, ok(REGISTERED), problem(404, "no such agent: h")) as (
        server,
        _,
        pauses,
    ):
        server.register("h", REGISTRATION)
        assert server.register("h", REGISTRATION) == REGISTERED
        assert len(pauses) == len(proxy_errors)
        with pytest.raises(NotFound, match="no such agent: h"):
            server.report("h", "n", HostFacts())


def test_answer_to_a_withdrawn_order_is_a_conflict_and_an_old_run_ends():
    with client_of(ok(Acknowledgement(is_wanted=False)), problem(409, "by another run")) as (server, *_):
        with pytest.raises(Conflict, match="the order 7 was withdrawn: undo"):
            server.answer(7, OK)
        with pytest.raises(BadSettings, match="by another run"):
            server.answer(7, OK)


@pytest.mark.parametrize(
    "url", ["ftp://h", "h:1", "http://", "http://a b", "http://h:99999", "http://a..b", "http://h/ä"]
)
def test_invalid_server_url_is_refused(url):
    with pytest.raises(BadSettings, match=r"agent\.servers: must be http://HOST:PORT"):
        HttpServer(ServerList([url], setting="agent.servers"), token=None, draw=lambda: 0.0, pause=lambda _: True)


@pytest.mark.parametrize("token", ["a secret\n", "secret €"])
def test_token_invalid_in_a_header_is_refused_and_not_shown(token):
    with pytest.raises(BadSettings, match="x-auth-token: has a character that a header cannot contain") as error:
        HttpServer(
            ServerList(["http://h"], setting="agent.servers"), token=token, draw=lambda: 0.0, pause=lambda _: True
        )
    assert "secret" not in str(error.value)


@contextmanager
def client_of_two(first, second):
    """Yield a client of two servers with these answers, their addresses, the requests of both, and the pauses."""
    pauses = []
    with scripted_server(*first) as (one, at_one), scripted_server(*second) as (two, at_two):
        servers = ServerList([one, two], setting="agent.servers")
        server = HttpServer(servers, token="t", draw=lambda: 0.5, pause=lambda s: pauses.append(s) or True)
        try:
            yield server, servers.urls, (at_one, at_two), pauses
        finally:
            server.close()


@pytest.mark.parametrize("failure", [None, (503, None), (502, b"<html>")])
def test_request_without_an_answer_goes_to_the_next_server_at_once(failure, capfd):
    with client_of_two([failure], [ok(REGISTERED), ok(PollAnswer())]) as (server, urls, requests, pauses):
        assert server.register("h", REGISTRATION) == REGISTERED
        assert server.poll(POLL) == PollAnswer()
        assert ([len(each) for each in requests], pauses) == ([1, 2], [])
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(each["event"], each["server"]) for each in lines] == [
        ("server_is_away", urls[0]),
        ("server_is_back", urls[1]),
    ]


def test_client_pauses_after_all_servers_have_failed():
    with client_of_two(2 * [(503, None)], [(503, None), (503, None), ok(REGISTERED)]) as (server, _, requests, pauses):
        server._servers.advance(server._servers.current)
        assert server.register("h", REGISTRATION) == REGISTERED
        assert ([len(each) for each in requests], pauses) == ([2, 3], [0.5, 1.0])


def test_refusal_is_final_although_another_server_exists():
    with client_of_two([problem(403, "this token may only touch host a, not h")], []) as (server, urls, requests, _):
        with pytest.raises(AccessDenied, match=f"^{urls[0]}: this token may only touch host a"):
            server.report("h", "n", HostFacts())
        assert len(requests[1]) == 0


def test_each_url_of_several_servers_is_checked_and_their_number_is_limited():
    with pytest.raises(BadSettings, match=r"agent\.servers: must be http://HOST:PORT"):
        HttpServer(
            ServerList(["http://h", "h:1"], setting="agent.servers"), token=None, draw=lambda: 0.0, pause=lambda _: True
        )
    for urls in ([], [f"http://h-{number}" for number in range(17)]):
        with pytest.raises(BadSettings, match=r"must be the URLs of 1 to 16 servers, got (0|17)$"):
            ServerList(urls, setting="agent.servers")


def test_only_the_first_report_of_a_failure_advances_the_list():
    servers = ServerList(["http://a/", "http://b", "http://a"], setting="agent.servers")
    assert servers.urls == ("http://a", "http://b")
    servers.advance("http://a")
    servers.advance("http://a")
    assert servers.current == "http://b"
    servers.advance("http://b")
    assert servers.current == "http://a"


UNKNOWN = problem(401, "authentication is required: x-auth-token is missing or unknown")


@contextmanager
def client_with_file(*answers, texts):
    """Yield a registered client whose token file has these texts, one at each read, and the pauses."""
    left, pauses = [*texts], []

    def read():
        text = left.pop(0) if len(left) > 1 else left[0]
        if text is None:
            raise BadRequest("--token-file token cannot be read: No such file or directory")
        return text

    with scripted_server(ok(REGISTERED), *answers) as (address, requests):
        token = AgentToken("old", read=read)
        servers = ServerList([address], setting="agent.servers")
        server = HttpServer(servers, token=token, draw=lambda: 0.5, pause=lambda s: pauses.append(s) or True)
        try:
            server.register("h", REGISTRATION)
            yield server, token, requests, pauses
        finally:
            server.close()


def test_refused_token_is_read_again_and_the_request_repeated_at_once():
    with client_with_file(UNKNOWN, ok(PollAnswer()), texts=["new"]) as (server, token, requests, pauses):
        assert server.poll(POLL) == PollAnswer()
        assert (token.text, len(requests), pauses) == ("new", 3, [])


def test_refused_token_waits_for_the_new_file(capfd):
    answers = [*5 * [UNKNOWN], ok(PollAnswer())]
    with client_with_file(*answers, texts=["old", None, "two\x7f", "old", "new"]) as (server, token, _, pauses):
        assert server.poll(POLL) == PollAnswer()
        assert (token.text, pauses) == ("new", 4 * [5.0])
    log = capfd.readouterr().err
    assert [log.count(f'"event":"credentials_{event}"') for event in ("refused", "unreadable", "read")] == [1, 1, 1]
    assert "new" not in log


def test_refused_token_ends_the_agent_after_five_minutes():
    with client_with_file(*61 * [UNKNOWN], texts=["old"]) as (server, _, requests, pauses):
        with pytest.raises(AccessDenied, match="authentication is required"):
            server.poll(POLL)
        assert (sum(pauses), len(requests)) == (300.0, 62)


def test_request_with_the_token_of_another_thread_does_not_read_the_file():
    token = AgentToken("old", read=lambda: "new")
    assert token.replace("old")
    assert token.replace("old")
    assert not token.replace("new")
    assert not AgentToken("fixed").replace("fixed")
