"""Answers as they come over a line, byte by byte: whole, in parts, cut off, and without an end."""

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
def speaking(*answers):
    """Serve one connection that says these parts to each question; give the way to it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def speak():
        line, _ = listener.accept()
        with line:
            for parts in answers:
                line.recv(65_536)
                for part in parts:
                    try:
                        line.sendall(part)
                    except OSError:
                        return

    thread = threading.Thread(target=speak)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with closing(Wire(url, headers={}, timeout_s=0.5, setting="server")) as way:
            yield way
    finally:
        thread.join(30)
        listener.close()


def slowly(part, *, times, pause_s=0.1):
    """Give a part again and again, with pauses."""
    for _ in range(times):
        yield part
        time.sleep(pause_s)


def test_answers_of_all_forms_come_whole_on_one_connection():
    sized, chunked = b"content-length: 4\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"
    with speaking(
        [HEAD, sized + b"ab", b"cd"],
        [HEAD + chunked + b"2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n"],
        [b"HTTP/1.1 204 No Content\r\n\r\n"],
        [HEAD + b"connection: close\r\n\r\n" + b"to the ", b"end"],
    ) as way:
        assert way.send("GET", "/", version=None) == (200, b"abcd")
        assert way.send("GET", "/", version=None) == (200, b"abc")
        assert way.send("GET", "/", version=None) == (204, b"")
        assert way.send("GET", "/", version=None) == (200, b"to the end")


@pytest.mark.parametrize(
    "begins", [b"content-length: 9\r\n\r\nab", b"transfer-encoding: chunked\r\n\r\n5\r\nab"], ids=["sized", "chunked"]
)
def test_an_answer_that_is_cut_off_is_none(begins):
    with speaking([HEAD + begins]) as way:
        with pytest.raises(http.client.IncompleteRead):
            way.send("GET", "/", version=None)
        assert not way.is_open


def test_an_answer_that_comes_byte_by_byte_is_not_waited_for_without_end():
    begun_s = time.monotonic()
    with (
        speaking(slowly(HEAD + b"content-length: 999\r\n\r\n", times=80)) as way,
        pytest.raises(TimeoutError, match=r"did not end in 0\.5 s"),
    ):
        way.send("GET", "/", version=None)
    assert time.monotonic() - begun_s < 5


def test_an_answer_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(wire, "_ANSWER_MAX_BYTES", 1_000)
    with (
        speaking([HEAD + b"\r\n", *(b"a" * 300,) * 9]) as way,
        pytest.raises(http.client.HTTPException, match="more than 1,000 bytes"),
    ):
        way.send("GET", "/", version=None)
