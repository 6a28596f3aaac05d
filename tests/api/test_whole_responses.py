"""Responses that the server sends in one write."""

import re

import pytest

from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server over four hosts."""
    folder = tmp_path_factory.mktemp("responses")
    with open_roost(None, folder) as roost:
        roost.install(fleet(4, vcpus=4))
    with serve(noun="up", folder=folder) as running:
        yield running


def test_response_has_a_date_and_the_length_of_its_body(server):
    head, _, body = server.raw(b"GET /v1/zones HTTP/1.0\r\nx-auth-token: admin\r\n\r\n").partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0] == b"http/1.1 200 ok"
    assert any(line.startswith(b"date: ") for line in lines)
    assert b"connection: close" in lines
    assert b"content-length: %d" % len(body) in lines


def test_response_to_head_has_no_body(server):
    head, _, body = server.raw(
        b"HEAD /v1/zones HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\nconnection: close\r\n\r\n"
    ).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 405 ")
    assert body == b""


def test_pipelined_requests_are_answered_in_order(server):
    request = b"GET /v1/hosts/host-%d HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n%b\r\n"
    answers = server.raw(*[request % (at, b"connection: close\r\n" if at == 3 else b"") for at in range(4)])
    assert re.findall(rb'"host":"(host-\d)"', answers) == [b"host-0", b"host-1", b"host-2", b"host-3"]
