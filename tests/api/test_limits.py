"""Limits of the size and duration of requests: beyond them a clear error, and the server goes on."""

import json
import time

import pytest

from tests.support.servers.servers import ADMIN, read_all, serve

SETTINGS = """
body_max_bytes = 2000
head_max_bytes = 4096
header_count_max = 20
uri_max_bytes = 1000
header_timeout_s = 0.4
body_timeout_s = 0.4
keep_alive_s = 1
connections_max = 20
"""
HEAD = b"".join(f"{name}: {value}\r\n".encode() for name, value in ADMIN.items()) + b"host: localhost\r\n"
JSON = b"content-type: application/json\r\n"
START = b"POST /resource_providers HTTP/1.1\r\n" + HEAD + JSON


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serve(settings=SETTINGS, folder=tmp_path_factory.mktemp("limits")) as server:
        yield server


@pytest.fixture(autouse=True)
def server_survives(server):
    """Check after each test that the next valid request succeeds."""
    yield
    assert server.ask("GET", "/resource_providers")[0] == 200


def parse_error(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["errors"][0]["detail"]


def test_large_body_is_refused_by_its_content_length(server):
    status, _, body = server.ask("POST", "/resource_providers", b"x" * 2001)
    assert (status, "placement.body_max_bytes" in body["errors"][0]["detail"]) == (413, True)


def test_large_chunked_body_is_refused(server):
    start = b"POST /resource_providers HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-type: application/json\r\n"
    status, detail = parse_error(
        server.raw(start + HEAD + b"\r\n", b"3e8\r\n" + b"x" * 1000 + b"\r\n", b"3e9\r\n" + b"y" * 1001)
    )
    assert (status, "placement.body_max_bytes" in detail) == (413, True)


def test_connection_is_reusable_after_a_refused_body(server):
    big = b"POST /resource_providers HTTP/1.1\r\ncontent-length: 3000\r\n" + HEAD + JSON + b"\r\n" + b"x" * 3000
    good = b"GET / HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\n\r\n"
    with server.connect() as client:
        client.sendall(big)
        time.sleep(0.1)
        client.sendall(good)
        answers = read_all(client)
    assert (answers.count(b"HTTP/1.1 413"), answers.count(b"HTTP/1.1 200")) == (1, 1)


@pytest.mark.parametrize(
    ("request_bytes", "status", "limit"),
    [
        (b"GET /" + b"a" * 1001 + b" HTTP/1.1\r\n\r\n", 414, "uri_max_bytes"),
        (b"GET /?" + b"a" * 900_000, 414, "uri_max_bytes"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 21 + b"\r\n", 431, "header_count_max"),
        (b"GET / HTTP/1.1\r\na: " + b"b" * 5000 + b"\r\n\r\n", 431, "head_max_bytes"),
        (b"GET / HTTP/1.1\r\na: " + b"b" * 900_000, 431, "head_max_bytes"),
        (b"GET / HTTP/1.1\r\n" + b"a" * 5000, 431, "head_max_bytes"),
        (b"GET / HTTP/1.1\r\n", 408, "header_timeout_s"),
        (b"GET / HT", 408, "header_timeout_s"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "must have one host header"),
        (b"GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n", 400, "must have one host header"),
        (b"GET / HTTP/1.1\r\nhost: a/b\r\n\r\n", 400, "must have one host header"),
        (b"GET / HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n", 400, "must have one host header"),
        (START + b"content-length: 9\r\n\r\n{", 408, "body_timeout_s"),
        (START + b"transfer-encoding: chunked\r\n\r\n5\r\n", 408, "body_timeout_s"),
    ],
)
def test_error_for_a_long_or_slow_request_names_the_limit(server, request_bytes, status, limit):
    status_code, detail = parse_error(server.raw(request_bytes))
    assert (status_code, limit in detail) == (status, True)


def test_slow_request_head_times_out(server):
    with server.connect() as client:
        for letter in b"GET / HTTP/1.1\r\nhost: localhost":
            try:
                client.sendall(bytes([letter]))
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(0.05)
        assert parse_error(read_all(client))[0] == 408


def test_malformed_http_is_refused(server):
    assert parse_error(server.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"))[0] == 400
    assert parse_error(server.raw(b"GET  HTTP/1.1\r\n\r\n"))[0] == 400
    assert parse_error(server.raw(b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx"))[0] == 400
    assert parse_error(server.raw(b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n"))[0] == 400


@pytest.mark.parametrize(
    ("request_bytes", "status", "text"),
    [
        (b"GET /v1/" + b"a" * 1001 + b" HTTP/1.1\r\n\r\n", 414, "placement.uri_max_bytes"),
        (b"GET /v1/instances HTTP/1.1\r\n" + b"a: b\r\n" * 21 + b"\r\n", 431, "placement.header_count_max"),
        (b"GET /v1/instances HTTP/1.1\r\n", 408, "placement.header_timeout_s"),
        (b"POST /v1/decisions HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400, "not a valid HTTP request"),
        (
            b"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
            400,
            "not a valid HTTP request",
        ),
    ],
)
def test_http_errors_below_v1_are_problem_details(server, request_bytes, status, text):
    head, _, body = server.raw(request_bytes).partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert b"content-type: application/problem+json" in head
    details = json.loads(body)
    name = {400: "bad-request", 408: "request-timeout", 414: "url-too-long", 431: "headers-too-large"}[status]
    assert (details["type"], details["status"], text in details["detail"]) == (f"/v1/errors#{name}", status, True)
    assert f"x-openstack-request-id: {details['request_id']}".encode() in head


def test_idle_connection_is_closed(server):
    assert server.raw() == b""
    assert server.raw(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_aborted_requests_free_their_connections(server):
    start = b"POST /resource_providers HTTP/1.1\r\ncontent-length: 1000\r\n" + HEAD + b"\r\n{"
    for _ in range(30):
        with server.connect() as client:
            client.sendall(start)
    server.raw(start, is_shut=True)


def test_connections_beyond_the_limit_get_503(server):
    clients = [server.connect() for _ in range(20)]
    try:
        status, detail = parse_error(server.raw(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"))
        assert (status, "placement.connections_max" in detail) == (503, True)
    finally:
        for client in clients:
            client.close()


def test_pipelined_requests_are_answered_in_order(server):
    known = b"GET /traits HTTP/1.1\r\n" + HEAD + b"\r\n"
    unknown = b"GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"  # This response ends its connection.
    answers = server.raw(known + unknown + last)
    assert [part.split()[0] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"401", b"200"]


def test_expected_body_is_requested_with_100_continue(server):
    start = b"POST /resource_providers HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n" + HEAD
    with server.connect() as client:
        client.sendall(start + b"content-type: application/json\r\nconnection: close\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        client.sendall(b"{}")
        assert read_all(client).startswith(b"HTTP/1.1 400")


def test_refused_request_gets_no_100_continue(server):
    start = b"POST /resource_providers HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    answer = server.raw(start)
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"\r\nconnection: close\r\n" in answer


def test_malformed_data_behind_a_request_causes_no_error(server):
    start = b"POST /resource_providers HTTP/1.1\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n" + HEAD
    server.raw(start + b"\r\nno chunk")
    server.raw(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * 20 + b"no request\r\n\r\n")
    assert "fault" not in server.said
    assert "exception" not in server.said


@pytest.mark.parametrize(
    "line", [b"CONNECT / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n"]
)
def test_protocol_upgrades_are_refused(server, line):
    answer = server.raw(line + b"host: localhost\r\n\r\nanything")
    assert answer.startswith((b"HTTP/1.1 405", b"HTTP/1.1 401", b"HTTP/1.1 200"))
    assert b"connection: close" in answer


def test_responses_do_not_name_the_server_software(server):
    assert b"uvicorn" not in server.raw(b"GET / HTTP/1.0\r\n\r\n")
