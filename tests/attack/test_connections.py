"""Many connections, or many requests on one, do not block the server for others."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.connections import idle_connections, pipelining
from tests.attack.server import Target, target
from tests.support.fleets.products import environ
from tests.support.servers.servers import read_all, serve

ASK = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
LAST = b"GET /nowhere HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
CONNECTIONS_MAX = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    settings = f"header_timeout_s = 1.0\nconnections_max = {CONNECTIONS_MAX}"
    with target(tmp_path_factory.mktemp("connections"), settings=settings) as target_server:
        yield target_server


def test_unread_responses_use_no_memory(server: Target) -> None:
    figures = pipelining(server, connections=10, duration_s=3.0)
    assert figures.rss_growth_mib < 64
    assert figures.observations.problems == ()
    assert figures.observations.decisions > 0


def test_pipelined_requests_are_all_answered_in_order(server: Target) -> None:
    answers = server.served.raw(ASK * 3_000 + LAST)
    assert [part[:3] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"200"] * 3_000 + [b"404"]


def test_pipelined_requests_with_bodies_are_all_answered_in_order(server: Target) -> None:
    token_header = f"x-auth-token: {server.headers['x-auth-token']}\r\n".encode()
    start = b"POST /v1/decisions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" + token_header
    body = b'{"flavor":\r\n\r\n{"vcpus": 1}}'
    small = start + f"content-length: {len(body)}\r\n\r\n".encode() + body
    chunks = start + b"transfer-encoding: chunked\r\n\r\n5\r\n{\r\n\r\n\r\n1\r\n}\r\n0\r\n\r\n"
    answers = server.served.raw((small + chunks) * 50 + LAST)
    assert [part[:3] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"201", b"400"] * 50 + [b"404"]


def test_silent_connections_are_closed_and_refusals_are_logged_once(server: Target) -> None:
    figures = idle_connections(server, connections=3 * CONNECTIONS_MAX)
    assert figures.statuses[503] > 0  # these responses name the limit
    assert figures.statuses[0] >= CONNECTIONS_MAX - 1
    assert figures.rss_growth_mib < 32
    with socket.create_connection((server.host, server.port), timeout=30) as silent:
        assert read_all(silent) == b""  # before this client times out
    assert server.served.ask("GET", "/healthz", headers={})[0] == 200
    assert server.served.said.count('"event":"connections_refused"') == 1
    metrics = server.served.ask("GET", "/metrics", headers={})[2].decode()
    refused = next(line for line in metrics.splitlines() if line.startswith("roost_connections_refused_total"))
    assert float(refused.split()[1]) >= CONNECTIONS_MAX


def test_open_files_limit_is_raised_and_limits_the_connections() -> None:
    results = {limit: _connections_within(limit) for limit in ("-S -n 150", "-n 150")}
    assert results["-S -n 150"].stdout == "1000\n"
    assert results["-S -n 150"].stderr == ""
    assert results["-n 150"].stdout == "50\n"
    assert '"connections_max":50,"setting":1000,"files":150' in results["-n 150"].stderr


def _connections_within(limit: str) -> "subprocess.CompletedProcess[str]":
    script = "from roost.api.server.connection_limit import fit_connections; print(fit_connections(1000))"
    words = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", sys.executable, "-c", script]
    return subprocess.run(words, env=environ(), capture_output=True, text=True, check=True, timeout=60)


def test_connection_without_a_first_byte_is_closed_early(tmp_path: Path) -> None:
    with serve(folder=tmp_path, settings="header_timeout_s = 0.5") as server:
        assert server.raw() == b""  # keep_alive_s is 75 s, longer than this client waits
