"""Responses on a connection, byte by byte: complete, in parts, truncated, and endless."""

import http.client
import socket
import threading
import time
from contextlib import closing, contextmanager

import pytest

from roost.client import wire
from roost.client.wire import Wire

HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def serve_parts(*answers):
    """Serve one connection, with a list of parts for each request; yield the client."""
    listener = socket.create_server(("127.0.0.1", 0))

    def send_parts():
        connection, _ = listener.accept()
        with connection:
            for parts in answers:
                connection.recv(65_536)
                for part in parts:
                    try:
                        connection.sendall(part)
                    except OSError:
                        return

    thread = threading.Thread(target=send_parts)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with closing(Wire(url, headers={}, timeout_s=0.5, setting="server")) as client:
            yield client
    finally:
        thread.join(30)
        listener.close()


def repeat_slowly(part, *, times, pause_s=0.1):
    """Yield a part several times, with pauses."""
    for _ in range(times):
        yield part
        time.sleep(pause_s)


def test_responses_of_every_framing_are_read_on_one_connection():
    sized, chunked = b"content-length: 4\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"
    with serve_parts(
        [HEAD, sized + b"ab", b"cd"],
        [HEAD + chunked + b"2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n"],
        [b"HTTP/1.1 204 No Content\r\n\r\n"],
        [HEAD + b"connection: close\r\n\r\n" + b"to the ", b"end"],
    ) as client:
        assert client.send("GET", "/", version=None) == (200, b"abcd")
        assert client.send("GET", "/", version=None) == (200, b"abc")
        assert client.send("GET", "/", version=None) == (204, b"")
        assert client.send("GET", "/", version=None) == (200, b"to the end")


@pytest.mark.parametrize(
    "beginning",
    [b"content-length: 9\r\n\r\nab", b"transfer-encoding: chunked\r\n\r\n5\r\nab"],
    ids=["sized", "chunked"],
)
def test_truncated_response_is_an_error(beginning):
    with serve_parts([HEAD + beginning]) as client:
        with pytest.raises(http.client.IncompleteRead):
            client.send("GET", "/", version=None)
        assert not client.is_open


def test_slow_response_times_out_as_a_whole():
    start_s = time.monotonic()
    with (
        serve_parts(repeat_slowly(HEAD + b"content-length: 999\r\n\r\n", times=80)) as client,
        pytest.raises(TimeoutError, match=r"did not end in 0\.5 s"),
    ):
        client.send("GET", "/", version=None)
    assert time.monotonic() - start_s < 5


def test_endless_response_is_abandoned(monkeypatch):
    monkeypatch.setattr(wire, "_ANSWER_MAX_BYTES", 1_000)
    with (
        serve_parts([HEAD + b"\r\n", *(b"a" * 300,) * 9]) as client,
        pytest.raises(http.client.HTTPException, match="more than 1,000 bytes"),
    ):
        client.send("GET", "/", version=None)


def test_connection_attempt_to_a_silent_machine_ends_before_the_timeout_of_answers():
    # The kernel drops connections beyond the backlog, as a machine without power does.
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.socket() as first,
        socket.socket() as more,
    ):
        for each in (first, more):
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with closing(Wire(url, headers={}, timeout_s=600.0, setting="server", connect_s=0.2)) as client:
            with pytest.raises(TimeoutError):
                client.send("GET", "/", version=None)
            assert not client.is_open


def test_connection_detects_a_dead_machine_also_while_it_waits_for_an_answer():
    with serve_parts([HEAD + b"content-length: 0\r\n\r\n"]) as client:
        client.send("GET", "/", version=None)
        connected = client._connection.sock
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle_s, pause_s, probes = (
            connected.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle_s + pause_s * probes == 20
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
