"""Random requests to the /v1 API of a server with agents and instances: no server error, and it keeps working."""

import json
import re
from contextlib import ExitStack
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.api.v1.routes import TABLE
from roost.simulator.stable_uuids import uuid_of
from tests.api.fuzz import SETTINGS, bodies, check, send
from tests.support.agents.http_agents import AgentPlayers
from tests.support.databases.postgres import fresh_database
from tests.support.fleets.products import fleet
from tests.support.fleets.wire_values import TEXTS, values_of
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve

pytestmark = pytest.mark.long

HOSTS = ("host-0", "host-1", "host-2")
SMALL = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 16}}
# Other tests read the event stream, which never ends.
ROUTES = sorted((path, method) for path, methods in TABLE.items() for method in methods if path != "/events")
MALFORMED_BODIES = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"1",
    b'"x"',
    b"{",
    b"\xff",
    b'{"a": 1}',
    b"[" * 50_000,
    b'{"a": "\\ud800"}',
)
HEADERS = [b"x-auth-token: admin", b"content-type: application/json"]


class Target:
    """A server under test, with its agents, and names of its objects."""

    def __init__(self, server):
        self.server, self.players = server, AgentPlayers(server, HOSTS)
        build = self.players.ask("POST", "/instances", {**SMALL, "name": "web", "count": 4})[1]
        self.players.over(build["operation"])
        self.instances, self.operation = build["instances"], build["operation"]
        self.players.ask("POST", f"/instances/{self.instances[0]}/migrate", {})
        self.words = [
            *self.instances,
            self.operation,
            *HOSTS,
            *(uuid_of("run", host) for host in HOSTS),
            "small",
            "1",
            "web",
            uuid_of("nobody"),
            self.instances[0].upper(),
            self.instances[1].replace("-", ""),
            f"{{{self.instances[2]}}}",
        ]

    def send_request(self, method, path, body, *, query=""):
        """Send one request."""
        target = f"/v1{path}?{query}" if query else f"/v1{path}"
        check(send(self.server, method, target, body, HEADERS))

    def check_health(self):
        """Check that the server runs, has logged no error and still builds an instance."""
        assert self.server.process.poll() is None, self.server.said
        assert self.server.problems == []
        players = AgentPlayers(self.server, HOSTS)
        for host in HOSTS:
            change = {"disabled": False, "forced_down": False}
            assert players.ask("PATCH", f"/services/{host}", change)[0] == 200
        build = players.ask("POST", "/instances", {**SMALL, "name": "after"})[1]
        assert players.over(build["operation"])["outcome"] == "done"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def target(request, tmp_path_factory):
    folder, hosts = tmp_path_factory.mktemp("own"), fleet(3, vcpus=1_000)
    with ExitStack() as stack:
        options = ()
        if request.param == "postgresql":
            url = stack.enter_context(fresh_database(request.getfixturevalue("postgres_server")))
            options = ("--database", url)
        with roost_api(hosts, url=options[1] if options else folder / "roost.db"):
            pass
        server = stack.enter_context(serve(*options, settings=SETTINGS, noun="up", folder=folder))
        yield Target(server)


def fill_path(path, word):
    """Return a path with a word in place of its parameters."""
    return re.sub(r"{\w+}", lambda _: quote(word, safe=""), path)


def send_random_requests(target, examples):
    """Send requests in the format of each route, with some wrong values."""
    kinds = {kind for methods in TABLE.values() for route in methods.values() for kind in (route.body, route.query)}
    values = {kind: values_of(kind, target.words) for kind in kinds if kind is not None}
    names = st.sampled_from(target.words) | st.sampled_from(TEXTS) | st.text(max_size=4)

    @settings(max_examples=examples)
    @given(st.data())
    def run(data):
        path, method = data.draw(st.sampled_from(ROUTES))
        route = TABLE[path][method]
        word = data.draw(names).encode("utf-8", "replace").decode()
        body, query = b"", ""
        if route.body is not None:
            body = json.dumps(data.draw(values[route.body])).encode()
            body = data.draw(bodies()) if data.draw(st.integers(0, 9)) == 0 else body
        if route.query is not None:
            parameters = data.draw(values[route.query])
            query = urlencode(parameters, errors="replace") if isinstance(parameters, dict) else "x"
        target.send_request(method, fill_path(path, word), body, query=query)

    run()
    target.check_health()


def test_almost_valid_requests_get_no_server_error(target):
    send_random_requests(target, 300)


@pytest.mark.soak
def test_twenty_thousand_almost_valid_requests_get_no_server_error(target):
    send_random_requests(target, 20_000)


def test_every_route_survives_malformed_bodies(target):
    for path, method in ROUTES:
        for body in MALFORMED_BODIES if TABLE[path][method].body is not None else (b"", b"{", b"[" * 50_000):
            target.send_request(method, fill_path(path, target.instances[3]), body)
    target.check_health()


def test_every_route_survives_unusual_names(target):
    for path, method in ROUTES:
        for word in (*target.words, *TEXTS) if "{" in path else ():
            if method == "GET" or len(word) > 250 or not word.isalnum():
                target.send_request(method, fill_path(path, word), b"{}" if method != "GET" else b"")
    target.check_health()
