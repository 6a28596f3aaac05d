"""Limits, timeouts, outages and CORS of the ASGI application."""

import asyncio
import json
import threading

import pytest

from roost.api.access.authentication import trust_headers
from roost.api.access.policy import Policy
from roost.api.answer_options import DEFAULTS, Options
from roost.api.asgi import AsgiApplication
from roost.api.health.probes import HealthCheck, Probes
from roost.api.health.readiness import Readiness
from roost.api.outages import Outages
from roost.api.placement.application import Application
from roost.errors import StoreBroken, StoreBusy, StoreGone, StoreOutdated, Unavailable
from roost.model.settings.monitoring_settings import Monitoring
from roost.model.settings.placement_settings import Placement as Settings
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.placement_service import Placement
from roost.store.memory_store import MemoryStore


class InProcessServer:
    """The API as uvicorn calls it, without sockets."""

    def __init__(self, serving, *, options=DEFAULTS, **settings):
        self.serving = serving
        self.disconnected = asyncio.Event()  # set when clients disconnect
        application = Application(identify=trust_headers, allows=Policy().allows, options=options)
        self.outages = Outages()
        self.application = AsgiApplication(application, serving, settings=Settings(**settings), outages=self.outages)

    async def ask(self, method, path, body=b"", **headers):
        """Return the status, headers and body of the response."""
        request_headers = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
        path, _, query = path.partition("?")
        request_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            request_headers.setdefault("content-type", "application/json")
        scope = {
            "type": "http",
            "method": method,
            "raw_path": path.encode(),
            "path": path,
            "query_string": query.encode(),
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in request_headers.items()],
        }
        messages_sent = []
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            if not messages:  # The client stays connected until the test sets the event.
                await self.disconnected.wait()
                return {"type": "http.disconnect"}
            return messages.pop()

        async def send(message):
            messages_sent.append(message)

        await self.application(scope, receive, send)
        return (
            messages_sent[0]["status"],
            {k.decode(): v.decode() for k, v in messages_sent[0]["headers"]},
            messages_sent[1]["body"].decode(),
        )


@pytest.fixture
def serving():
    current = Current(MemoryStore())
    Placement(current)
    serving_thread = Serving(current, queue_max=3)
    yield serving_thread
    serving_thread.stop()


@pytest.fixture
def blocked_thread(serving):
    """Block the deciding thread until the test sets the event."""
    gate, is_blocked = threading.Event(), threading.Event()

    class IgnoredResult:
        def set_running_or_notify_cancel(self):
            return True

        def set_result(self, result):
            pass

        def set_exception(self, error):
            pass

    def wait(_current):
        is_blocked.set()
        gate.wait()

    serving.submit(wait, IgnoredResult())
    is_blocked.wait()
    yield gate
    gate.set()


TEN_BILLION = "&".join(f"resources{number}=VCPU:2" for number in range(10)) + "&group_policy=none"


def create_deep_tree(server):
    """Create a tree with ten billion candidates for ten groups."""
    inventories = b'{"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 100}}}'
    root, *providers = [f"c0ffee00-0000-4000-8000-{number:012}" for number in range(11)]
    asyncio.run(server.ask("POST", "/resource_providers", f'{{"name": "root", "uuid": "{root}"}}'.encode()))
    for each in providers:
        body = f'{{"name": "{each}", "uuid": "{each}", "parent_provider_uuid": "{root}"}}'
        assert asyncio.run(server.ask("POST", "/resource_providers", body.encode()))[0] == 200
        assert asyncio.run(server.ask("PUT", f"/resource_providers/{each}/inventories", inventories))[0] == 200
    return root


@pytest.mark.usefixtures("blocked_thread")
def test_timed_out_request_names_the_limit(serving):
    server = InProcessServer(serving, request_timeout_s=0.05)
    status, headers, body = asyncio.run(server.ask("GET", "/resource_providers"))
    assert (status, headers["retry-after"], "placement.request_timeout_s" in body) == (503, "1", True)


@pytest.mark.parametrize("strategy", ["depth-first", "breadth-first"])
def test_search_ends_with_the_timeout_of_its_client(serving, strategy):
    """The search has ten billion candidates; the next request is still answered."""
    options = Options(candidates_max_bytes=2**62, allocation_candidates_generation_strategy=strategy)
    server = InProcessServer(serving, options=options, request_timeout_s=0.5)
    root = create_deep_tree(server)
    status, _, body = asyncio.run(server.ask("GET", f"/allocation_candidates?{TEN_BILLION}"))
    assert (status, "placement.request_timeout_s" in body) == (503, True)
    slow_server = InProcessServer(serving, request_timeout_s=30)
    assert asyncio.run(slow_server.ask("GET", f"/resource_providers/{root}"))[0] == 200


def test_search_ends_when_its_budget_is_used_up(serving):
    options = Options(candidates_max_bytes=2**62, allocation_candidates_generation_strategy="breadth-first")
    server = InProcessServer(serving, options=options, question_budget_s=0.05)
    root = create_deep_tree(server)
    status, headers, body = asyncio.run(server.ask("GET", f"/allocation_candidates?{TEN_BILLION}"))
    assert (status, headers["retry-after"]) == (503, "1")
    assert "took longer than 0.05 s (limit placement.question_budget_s)" in body
    assert asyncio.run(server.ask("GET", f"/resource_providers/{root}"))[0] == 200


def test_search_ends_when_its_client_disconnects(serving):
    options = Options(candidates_max_bytes=2**62, allocation_candidates_generation_strategy="breadth-first")
    server = InProcessServer(serving, options=options, question_budget_s=600.0)
    root = create_deep_tree(server)

    async def leave():
        search = asyncio.create_task(server.ask("GET", f"/allocation_candidates?{TEN_BILLION}"))
        await asyncio.sleep(0)
        server.disconnected.set()
        return await search

    assert asyncio.run(leave())[0] == 503
    server.disconnected.clear()
    assert asyncio.run(server.ask("GET", f"/resource_providers/{root}"))[0] == 200


def test_timed_out_write_is_not_started(serving, blocked_thread):
    server = InProcessServer(serving, request_timeout_s=0.05)
    assert asyncio.run(server.ask("POST", "/resource_providers", b'{"name": "late"}'))[0] == 503
    blocked_thread.set()
    assert "late" not in asyncio.run(server.ask("GET", "/resource_providers"))[2]


def test_requests_beyond_the_queue_limit_get_503(serving, blocked_thread):
    server = InProcessServer(serving)

    async def send_many():
        waiting = [asyncio.create_task(server.ask("GET", "/resource_providers")) for _ in range(5)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        refused = [task.result() for task in done]
        blocked_thread.set()
        return refused, [(await task)[0] for task in waiting]

    refused, statuses = asyncio.run(send_many())
    assert sorted(statuses) == [200, 200, 200, 503, 503]
    assert all("placement.queue_max" in body for _, _, body in refused)


def test_requests_beyond_the_concurrency_limit_get_503(serving, blocked_thread):
    server = InProcessServer(serving, requests_max=2)

    async def send_many():
        waiting = [asyncio.create_task(server.ask("GET", "/resource_providers")) for _ in range(3)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        blocked_thread.set()
        return [task.result() for task in done], [(await task)[0] for task in waiting]

    refused, statuses = asyncio.run(send_many())
    assert sorted(statuses) == [200, 200, 503]
    assert "placement.requests_max" in refused[0][2]


def test_internal_error_is_hidden_and_the_next_request_succeeds(serving, monkeypatch, capfd):
    def fail(*_arguments):
        raise ZeroDivisionError("a secret of the house")

    server = InProcessServer(serving)
    with monkeypatch.context() as patched:
        patched.setattr("roost.placement.writes.providers.row_of", fail)
        status, headers, body = asyncio.run(server.ask("GET", "/resource_providers/x"))
    assert (status, "secret" in body, headers["content-type"]) == (500, False, "application/json")
    assert "a secret of the house" in capfd.readouterr().err
    assert asyncio.run(server.ask("GET", "/resource_providers"))[0] == 200


def test_host_header_cannot_inject_a_response_header(serving):
    server = InProcessServer(serving, allowed_hosts=("*",))
    _, headers, _ = asyncio.run(server.ask("POST", "/resource_providers", b'{"name": "x"}', host="a\r\nset-cookie: b"))
    assert "\r" not in headers["location"]
    assert "set-cookie" not in headers


def test_stopping_server_responds_503():
    current = Current(MemoryStore())
    stopped = Serving(current)
    stopped.stop()
    status, _, body = asyncio.run(InProcessServer(stopped).ask("GET", "/resource_providers"))
    assert (status, "stopping" in body) == (503, True)


def test_unavailable_database_responds_503_with_retry_after(serving, monkeypatch):
    server = InProcessServer(serving)

    def fail():
        raise Unavailable("the database does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(serving._current.store, "changes", fail)
        status, headers, body = asyncio.run(server.ask("GET", "/resource_providers"))
        assert (status, headers["retry-after"], "does not answer" in body) == (503, "1", True)
    assert asyncio.run(server.ask("GET", "/resource_providers"))[0] == 200


@pytest.mark.parametrize("error", [StoreBroken, StoreBusy, StoreGone, StoreOutdated])
def test_database_path_is_logged_but_not_sent_to_clients(serving, monkeypatch, capfd, error):
    server = InProcessServer(serving)
    capfd.readouterr()

    def fail():
        raise error("/srv/private/roost.db: no space left")

    monkeypatch.setattr(serving._current.store, "changes", fail)
    status, headers, body = asyncio.run(server.ask("GET", "/resource_providers"))
    assert status == 503
    assert headers["retry-after"] in (set("12345") if error is StoreGone else {"1"})
    assert "The database cannot be used now" in body
    assert "private" not in body
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    (line,) = [line for line in events if line["event"] == "database_unusable"]
    assert line["problem"] == "/srv/private/roost.db: no space left"
    assert line["request_id"] == headers["x-openstack-request-id"]


async def healthz(server):
    """Return the status and body of /healthz."""
    messages_sent = []

    async def send(message):
        messages_sent.append(message)

    watched = Probes(
        HealthCheck(server.serving), readiness=Readiness(server.serving, limits=Monitoring), note=server.outages.note
    )
    await watched({"method": "GET", "path": "/healthz"}, None, send)
    return messages_sent[0]["status"], messages_sent[1]["body"].decode()


def test_healthz_reports_a_failed_write_until_one_succeeds(serving, monkeypatch):
    server = InProcessServer(serving)

    def full(_items):
        raise StoreBroken("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(serving._current.store, "commit", full)
        assert asyncio.run(server.ask("POST", "/resource_providers", b'{"name": "x"}'))[0] == 503
    assert asyncio.run(server.ask("GET", "/resource_providers"))[0] == 200
    status, body = asyncio.run(healthz(server))
    assert (status, body.splitlines()[0], "the last write failed" in body, "space" in body) == (200, "ok", True, False)
    assert asyncio.run(server.ask("POST", "/resource_providers", b'{"name": "x"}'))[0] == 200
    assert asyncio.run(healthz(server)) == (200, "ok\n")


CORS_SETTINGS = {"cors_allowed_origin": ("https://a.example",), "cors_max_age": 7}


def test_cors_is_off_by_default(serving):
    server = InProcessServer(serving)
    status, headers, _ = asyncio.run(
        server.ask("OPTIONS", "/traits", origin="https://a.example", access_control_request_method="GET")
    )
    assert status == 405
    assert not any(name.startswith("access-control") for name in headers)


def test_cors_allows_a_configured_origin(serving):
    server = InProcessServer(serving, **CORS_SETTINGS)
    status, headers, body = asyncio.run(
        server.ask(
            "OPTIONS", "/traits", origin="https://a.example", access_control_request_method="GET", x_auth_token=""
        )
    )
    assert (status, body, headers["access-control-max-age"]) == (200, "", "7")
    assert headers["access-control-allow-origin"] == "https://a.example"
    assert "PUT" in headers["access-control-allow-methods"]
    _, headers, _ = asyncio.run(server.ask("GET", "/resource_providers", origin="https://a.example"))
    assert headers["access-control-allow-origin"] == "https://a.example"
    assert "origin" in headers["vary"]


@pytest.mark.parametrize("origin", ["https://b.example", "null", "https://a.example.evil"])
def test_cors_refuses_other_origins(serving, origin):
    server = InProcessServer(serving, **CORS_SETTINGS)
    _, headers, _ = asyncio.run(server.ask("GET", "/resource_providers", origin=origin))
    assert not any(name.startswith("access-control") for name in headers)
    for path in ("/", "/resource_providers"):
        status, headers, body = asyncio.run(
            server.ask("OPTIONS", path, origin=origin, access_control_request_method="GET")
        )
        assert (status, body) == (200, "")
        assert not any(name.startswith("access-control") for name in headers)


def test_cors_allows_all_origins_with_a_wildcard(serving):
    server = InProcessServer(serving, cors_allowed_origin=("*",), cors_allow_credentials=False)
    _, headers, _ = asyncio.run(server.ask("GET", "/resource_providers", origin="https://any.example"))
    assert headers["access-control-allow-origin"] == "https://any.example"
    assert "access-control-allow-credentials" not in headers
