"""Random requests to the Placement API: no server error, no hang, no traceback, and the server keeps working."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.api.placement.routes import table
from tests.api.fuzz import SETTINGS, TEXTS, UUID, bodies, check, send
from tests.support.servers.servers import ADMIN, read_all, serve

PATHS = sorted(table())
METHODS = ["GET", "PUT", "POST", "DELETE"]
VERSIONS = ["1.0", "1.7", "1.8", "1.12", "1.14", "1.19", "1.25", "1.28", "1.30", "1.34", "1.38", "1.39"]
KEYS = [
    "name",
    "uuid",
    "member_of",
    "resources",
    "resources1",
    "required",
    "required1",
    "in_tree",
    "limit",
    "group_policy",
    "root_required",
    "same_subtree",
    "project_id",
    "user_id",
    "consumer_type",
    "associated",
    "member_of_a",
    "x",
]


def targets():
    """Paths of routes with random parameters, other paths, and random queries."""
    step = st.sampled_from([UUID, "VCPU", "CUSTOM_X", "%00", "%ff", "..", "%2e%2e", "a" * 300, "%", "in:x"])
    known = st.builds(lambda path, value: re.sub(r"{\w+}", lambda _: value, path), st.sampled_from(PATHS), step)
    other = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="?#"), max_size=20)
    pair = st.builds(
        lambda key, value: f"{key}={value}", st.sampled_from(KEYS), st.sampled_from([*TEXTS, "%ff", "%00"]) | other
    )
    queries = st.lists(pair, max_size=5).map("&".join)
    return st.builds(lambda path, query: f"{path}?{query}" if query else path, known | other.map("/".__add__), queries)


def headers():
    """Header lines, some of them repeated."""
    line = st.sampled_from(
        [
            b"content-type: application/json",
            b"content-type: text/plain",
            b"accept: application/json",
            b"accept: text/html",
            b"accept: \xff",
            b"x-auth-token: admin",
            b"x-auth-token: bob",
            b"openstack-api-version: placement 1.2",
            b"openstack-api-version: x",
            b"openstack-api-version: placement " + b"9" * 5000,
            b"content-length: 7",
            b"transfer-encoding: chunked",
            b"connection: close",
            b"expect: 100-continue",
            b"x: \x00",
            b": y",
            b"no colon",
            b"upgrade: websocket\r\nconnection: upgrade",
            b"host: a\tb",
            b"origin: null",
            b"x-roles: admin,service",
        ]
    )
    return st.lists(line, max_size=4)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serve(settings=SETTINGS, folder=tmp_path_factory.mktemp("fuzz")) as server:
        yield server


def check_health(server):
    """Check that the server runs, has logged no error and still responds."""
    assert server.process.poll() is None, server.said
    assert server.problems == []  # Neither an error nor a warning of a library.
    assert server.ask("GET", "/resource_providers/nowhere")[0] == 404


def valid_headers(version):
    return [
        f"{name}: {value}".encode()
        for name, value in {**ADMIN, "openstack-api-version": f"placement {version}"}.items()
    ]


def send_random_requests(server, examples):
    """Send well-formed HTTP with random content."""

    @settings(max_examples=examples)
    @given(st.sampled_from(METHODS), targets(), bodies(), st.sampled_from(VERSIONS), st.booleans())
    def run(method, target, body, version, is_service):
        lines = [*valid_headers(version), b"content-type: application/json"]
        check(send(server, method, target, body, [*lines, b"x-roles: admin,service"] if is_service else lines))

    run()
    check_health(server)


def send_random_bytes(server, examples):
    """Send bytes that may not be HTTP, in pieces that are cut anywhere."""
    word = st.sampled_from([*METHODS, "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE", "get", "", "G" * 99])
    ending = st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "", "HTTP/1.1 x"])

    def request(method, target, version, lines, body):
        return f"{method} {target} {version}\r\n".encode() + b"\r\n".join([*lines, b"", b""]) + body

    whole = st.builds(request, word, targets(), ending, headers(), bodies())

    @settings(max_examples=examples)
    @given(whole | st.binary(max_size=200), st.lists(st.integers(0, 3000), max_size=3), st.booleans())
    def run(data, cuts, is_shut):
        edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
        parts = [data[start:end] for start, end in pairwise(edges)]
        check(server.raw(*parts, is_shut=is_shut or not data))

    run()
    check_health(server)


def test_random_requests_get_no_server_error(server):
    send_random_requests(server, 150)


def test_random_bytes_get_no_server_error(server):
    send_random_bytes(server, 60)


@pytest.mark.soak
def test_twenty_thousand_random_requests_get_no_server_error(server):
    send_random_requests(server, 20_000)


@pytest.mark.soak
def test_five_thousand_random_byte_strings_get_no_server_error(server):
    send_random_bytes(server, 5_000)


@pytest.mark.parametrize("path", PATHS)
def test_every_route_survives_malformed_bodies(server, path):
    target = re.sub(r"{\w+}", UUID, path)
    for method in table()[path]:
        for body in (b"", b"{}", b"[]", b"null", b"1", b'"x"', b"{", b"\xff", b'{"a": 1}', b"[" * 50_000):
            check(send(server, method, target, body, [*valid_headers("1.39"), b"content-type: application/json"]))
    check_health(server)


def test_repeated_json_names_and_headers_are_survived(server):
    double = b'{"name": "first", "name": "second"}'
    lines = [*valid_headers("1.39"), b"content-type: application/json", b"content-type: application/json"]
    check(send(server, "POST", "/resource_providers", double, lines))
    check_health(server)


SLOW = b"POST /resource_providers HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n"
SLOW += b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"


def test_slow_clients_do_not_delay_others(server):
    clients = [server.connect() for _ in range(50)]
    try:
        for client in clients:
            client.sendall(SLOW)
        check_health(server)
        assert all(b"408" in read_all(client)[:20] for client in clients)
    finally:
        for client in clients:
            client.close()
