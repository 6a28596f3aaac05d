"""What the edge refuses before anybody looks at it, and how it bears what goes wrong behind it."""

import asyncio
import json
import threading

import pytest

from roost.api.access.authentication import trust_headers
from roost.api.access.policy import Policy
from roost.api.answer_options import DEFAULTS, Options
from roost.api.asgi import AsgiApplication
from roost.api.outages import Outages
from roost.api.placement.application import Application
from roost.api.probes import HealthCheck, Probes
from roost.errors import StoreBroken, StoreBusy, StoreGone, StoreOutdated, Unavailable
from roost.model.settings.placement_settings import Placement as Settings
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.placement_service import Placement
from roost.store.memory_store import MemoryStore


class Edge:
    """The API as uvicorn calls it, without uvicorn."""

    def __init__(self, serving, *, options=DEFAULTS, **settings):
        self.serving = serving
        self.gone = asyncio.Event()  # whether clients have left
        application = Application(identify=trust_headers, allows=Policy().allows, options=options)
        self.outages = Outages()
        self.application = AsgiApplication(application, serving, settings=Settings(**settings), outages=self.outages)

    async def ask(self, method, path, body=b"", **headers):
        """Give status, headers and body of one answer."""
        sent = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
        path, _, query = path.partition("?")
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            sent.setdefault("content-type", "application/json")
        scope = {
            "type": "http",
            "method": method,
            "raw_path": path.encode(),
            "path": path,
            "query_string": query.encode(),
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        }
        answer = []
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            if not messages:  # The client stays, unless the test lets it leave.
                await self.gone.wait()
                return {"type": "http.disconnect"}
            return messages.pop()

        async def send(message):
            answer.append(message)

        await self.application(scope, receive, send)
        return (
            answer[0]["status"],
            {k.decode(): v.decode() for k, v in answer[0]["headers"]},
            answer[1]["body"].decode(),
        )


@pytest.fixture
def serving():
    current = Current(MemoryStore())
    Placement(current)
    found = Serving(current, queue_max=3)
    yield found
    found.stop()


@pytest.fixture
def held(serving):
    """Hold the thread up until the test lets it go on."""
    gate, begun = threading.Event(), threading.Event()

    class Nobody:
        def set_running_or_notify_cancel(self):
            return True

        def set_result(self, result):
            pass

        def set_exception(self, error):
            pass

    def wait(_current):
        begun.set()
        gate.wait()

    serving.submit(wait, Nobody())
    begun.wait()
    yield gate
    gate.set()


TEN_BILLION = "&".join(f"resources{number}=VCPU:2" for number in range(10)) + "&group_policy=none"


def deep_tree(edge):
    """Make a tree in which ten groups can be served in ten billion ways."""
    inventories = b'{"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 100}}}'
    root, *providers = [f"c0ffee00-0000-4000-8000-{number:012}" for number in range(11)]
    asyncio.run(edge.ask("POST", "/resource_providers", f'{{"name": "root", "uuid": "{root}"}}'.encode()))
    for each in providers:
        body = f'{{"name": "{each}", "uuid": "{each}", "parent_provider_uuid": "{root}"}}'
        assert asyncio.run(edge.ask("POST", "/resource_providers", body.encode()))[0] == 200
        assert asyncio.run(edge.ask("PUT", f"/resource_providers/{each}/inventories", inventories))[0] == 200
    return root


@pytest.mark.usefixtures("held")
def test_a_request_that_takes_too_long_is_told_which_limit_it_met(serving):
    edge = Edge(serving, request_timeout_s=0.05)
    status, headers, body = asyncio.run(edge.ask("GET", "/resource_providers"))
    assert (status, headers["retry-after"], "placement.request_timeout_s" in body) == (503, "1", True)


@pytest.mark.parametrize("strategy", ["depth-first", "breadth-first"])
def test_a_search_whose_client_was_sent_away_does_not_go_on(serving, strategy):
    """There are ten billion ways; whoever asks next is answered although nobody ever sees them."""
    options = Options(candidates_max_bytes=2**62, allocation_candidates_generation_strategy=strategy)
    edge = Edge(serving, options=options, request_timeout_s=0.5)
    root = deep_tree(edge)
    status, _, body = asyncio.run(edge.ask("GET", f"/allocation_candidates?{TEN_BILLION}"))
    assert (status, "placement.request_timeout_s" in body) == (503, True)
    patient = Edge(serving, request_timeout_s=30)
    assert asyncio.run(patient.ask("GET", f"/resource_providers/{root}"))[0] == 200


def test_a_question_ends_when_its_budget_is_used_up(serving):
    options = Options(candidates_max_bytes=2**62, allocation_candidates_generation_strategy="breadth-first")
    edge = Edge(serving, options=options, question_budget_s=0.05)
    root = deep_tree(edge)
    status, headers, body = asyncio.run(edge.ask("GET", f"/allocation_candidates?{TEN_BILLION}"))
    assert (status, headers["retry-after"]) == (503, "1")
    assert "took longer than 0.05 s (limit placement.question_budget_s)" in body
    assert asyncio.run(edge.ask("GET", f"/resource_providers/{root}"))[0] == 200


def test_a_question_ends_when_its_client_leaves(serving):
    options = Options(candidates_max_bytes=2**62, allocation_candidates_generation_strategy="breadth-first")
    edge = Edge(serving, options=options, question_budget_s=600.0)
    root = deep_tree(edge)

    async def leave():
        asked = asyncio.create_task(edge.ask("GET", f"/allocation_candidates?{TEN_BILLION}"))
        await asyncio.sleep(0)
        edge.gone.set()
        return await asked

    assert asyncio.run(leave())[0] == 503
    edge.gone.clear()
    assert asyncio.run(edge.ask("GET", f"/resource_providers/{root}"))[0] == 200


def test_a_write_whose_client_was_sent_away_is_not_begun(serving, held):
    edge = Edge(serving, request_timeout_s=0.05)
    assert asyncio.run(edge.ask("POST", "/resource_providers", b'{"name": "late"}'))[0] == 503
    held.set()
    assert "late" not in asyncio.run(edge.ask("GET", "/resource_providers"))[2]


def test_more_than_may_wait_is_turned_away(serving, held):
    edge = Edge(serving)

    async def crowd():
        waiting = [asyncio.create_task(edge.ask("GET", "/resource_providers")) for _ in range(5)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        turned_away = [task.result() for task in done]
        held.set()
        return turned_away, [(await task)[0] for task in waiting]

    turned_away, statuses = asyncio.run(crowd())
    assert sorted(statuses) == [200, 200, 200, 503, 503]
    assert all("placement.queue_max" in body for _, _, body in turned_away)


def test_more_than_may_be_under_way_is_turned_away(serving, held):
    edge = Edge(serving, requests_max=2)

    async def crowd():
        waiting = [asyncio.create_task(edge.ask("GET", "/resource_providers")) for _ in range(3)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        held.set()
        return [task.result() for task in done], [(await task)[0] for task in waiting]

    turned_away, statuses = asyncio.run(crowd())
    assert sorted(statuses) == [200, 200, 503]
    assert "placement.requests_max" in turned_away[0][2]


def test_a_fault_is_told_without_its_story_and_the_next_request_is_answered(serving, monkeypatch, capfd):
    def fail(*_arguments):
        raise ZeroDivisionError("a secret of the house")

    edge = Edge(serving)
    with monkeypatch.context() as patched:
        patched.setattr("roost.placement.writes.providers.row_of", fail)
        status, headers, body = asyncio.run(edge.ask("GET", "/resource_providers/x"))
    assert (status, "secret" in body, headers["content-type"]) == (500, False, "application/json")
    assert "a secret of the house" in capfd.readouterr().err
    assert asyncio.run(edge.ask("GET", "/resource_providers"))[0] == 200


def test_what_a_client_sent_never_becomes_a_header_of_its_own(serving):
    edge = Edge(serving, allowed_hosts=("*",))
    _, headers, _ = asyncio.run(edge.ask("POST", "/resource_providers", b'{"name": "x"}', host="a\r\nset-cookie: b"))
    assert "\r" not in headers["location"]
    assert "set-cookie" not in headers


def test_a_server_that_stops_says_so():
    current = Current(MemoryStore())
    stopped = Serving(current)
    stopped.stop()
    status, _, body = asyncio.run(Edge(stopped).ask("GET", "/resource_providers"))
    assert (status, "stopping" in body) == (503, True)


def test_a_database_that_is_gone_is_a_matter_of_later(serving, monkeypatch):
    edge = Edge(serving)

    def gone():
        raise Unavailable("the database does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(serving._current.store, "changes", gone)
        status, headers, body = asyncio.run(edge.ask("GET", "/resource_providers"))
        assert (status, headers["retry-after"], "does not answer" in body) == (503, "1", True)
    assert asyncio.run(edge.ask("GET", "/resource_providers"))[0] == 200


@pytest.mark.parametrize("error", [StoreBroken, StoreBusy, StoreGone, StoreOutdated])
def test_a_client_is_not_told_where_the_database_lies_and_the_log_is(serving, monkeypatch, capfd, error):
    edge = Edge(serving)
    capfd.readouterr()

    def fail():
        raise error("/srv/private/roost.db: no space left")

    monkeypatch.setattr(serving._current.store, "changes", fail)
    status, headers, body = asyncio.run(edge.ask("GET", "/resource_providers"))
    assert status == 503
    assert headers["retry-after"] in (set("12345") if error is StoreGone else {"1"})
    assert "The database cannot be used now" in body
    assert "private" not in body
    said = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    (line,) = [line for line in said if line["event"] == "database_unusable"]
    assert line["problem"] == "/srv/private/roost.db: no space left"
    assert line["request_id"] == headers["x-openstack-request-id"]


async def healthz(edge):
    """Give status and body of /healthz beside an API."""
    answer = []

    async def send(message):
        answer.append(message)

    watched = Probes(HealthCheck(edge.serving), note=edge.outages.note)
    await watched({"method": "GET", "path": "/healthz"}, None, send)
    return answer[0]["status"], answer[1]["body"].decode()


def test_a_write_that_failed_is_told_by_healthz_until_one_succeeds(serving, monkeypatch):
    edge = Edge(serving)

    def full(_items):
        raise StoreBroken("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(serving._current.store, "commit", full)
        assert asyncio.run(edge.ask("POST", "/resource_providers", b'{"name": "x"}'))[0] == 503
    assert asyncio.run(edge.ask("GET", "/resource_providers"))[0] == 200
    status, body = asyncio.run(healthz(edge))
    assert (status, body.splitlines()[0], "the last write failed" in body, "space" in body) == (200, "ok", True, False)
    assert asyncio.run(edge.ask("POST", "/resource_providers", b'{"name": "x"}'))[0] == 200
    assert asyncio.run(healthz(edge)) == (200, "ok\n")


CORS = {"cors_allowed_origin": ("https://a.example",), "cors_max_age": 7}


def test_no_page_is_let_in_unless_its_origin_is_named(serving):
    edge = Edge(serving)
    status, headers, _ = asyncio.run(
        edge.ask("OPTIONS", "/traits", origin="https://a.example", access_control_request_method="GET")
    )
    assert status == 405
    assert not any(name.startswith("access-control") for name in headers)


def test_a_page_of_a_named_origin_is_let_in(serving):
    edge = Edge(serving, **CORS)
    status, headers, body = asyncio.run(
        edge.ask("OPTIONS", "/traits", origin="https://a.example", access_control_request_method="GET", x_auth_token="")
    )
    assert (status, body, headers["access-control-max-age"]) == (200, "", "7")
    assert headers["access-control-allow-origin"] == "https://a.example"
    assert "PUT" in headers["access-control-allow-methods"]
    _, headers, _ = asyncio.run(edge.ask("GET", "/resource_providers", origin="https://a.example"))
    assert headers["access-control-allow-origin"] == "https://a.example"
    assert "origin" in headers["vary"]


@pytest.mark.parametrize("origin", ["https://b.example", "null", "https://a.example.evil"])
def test_a_page_of_another_origin_is_not_let_in(serving, origin):
    edge = Edge(serving, **CORS)
    _, headers, _ = asyncio.run(edge.ask("GET", "/resource_providers", origin=origin))
    assert not any(name.startswith("access-control") for name in headers)
    for path in ("/", "/resource_providers"):
        status, headers, body = asyncio.run(
            edge.ask("OPTIONS", path, origin=origin, access_control_request_method="GET")
        )
        assert (status, body) == (200, "")
        assert not any(name.startswith("access-control") for name in headers)


def test_all_origins_may_be_let_in(serving):
    edge = Edge(serving, cors_allowed_origin=("*",), cors_allow_credentials=False)
    _, headers, _ = asyncio.run(edge.ask("GET", "/resource_providers", origin="https://any.example"))
    assert headers["access-control-allow-origin"] == "https://any.example"
    assert "access-control-allow-credentials" not in headers
