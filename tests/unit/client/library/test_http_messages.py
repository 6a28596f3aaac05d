"""Requests as bytes, and the parser of answers."""

import http.client
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.client.library.http_messages import AnswerParser, encode_request

ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Name: a\r\n\r\nhello",
    b"HTTP/1.1 204 No Content\r\nx-name: a\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Name: a\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\nX-Name: a\r\n\r\nhello",
]


def parse(*parts):
    """Return the parser after some parts."""
    parser = AnswerParser()
    for part in parts:
        parser.feed(part)
    return parser


@given(answer=st.sampled_from(ANSWERS), cuts=st.lists(st.integers(0, 120), max_size=6))
def test_answer_is_the_same_in_any_parts(answer, cuts):
    places = [0, *sorted(min(cut, len(answer)) for cut in cuts), len(answer)]
    parser = parse(*[answer[begin:end] for begin, end in itertools.pairwise(places) if begin < end])
    whole = parse(answer)
    assert parser.is_complete
    assert (parser.status, parser.headers) == (whole.status, whole.headers)
    assert parser.headers["x-name"] == "a"
    assert parser.take_body() == (b"" if parser.status == 204 else b"hello")
    assert parser.can_continue


def test_connection_is_not_used_again_after_more_bytes_than_the_answer():
    assert not parse(ANSWERS[0] + ANSWERS[0]).can_continue
    assert not parse(ANSWERS[0], b"x").can_continue


def test_connection_is_not_used_again_if_the_server_closes_it():
    assert not parse(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").can_continue


def test_answer_without_a_length_ends_with_its_connection():
    parser = parse(b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo")
    assert not parser.is_complete
    parser.end()
    assert (parser.take_body(), parser.can_continue) == (b"hello", False)


@pytest.mark.parametrize("answer", [ANSWERS[0][:-1], ANSWERS[2][:-3], b"HTTP/1.1 200 OK\r\n", b""])
def test_incomplete_answer_is_an_error(answer):
    parser = parse(*[answer] if answer else [])
    with pytest.raises(http.client.RemoteDisconnected):
        parser.end()


def test_other_protocols_are_an_error():
    with pytest.raises(http.client.HTTPException, match="not HTTP"):
        parse(b"SSH-2.0-OpenSSH\r\n")


def test_endless_head_is_an_error():
    with pytest.raises(http.client.HTTPException, match="too large"):
        parse(b"HTTP/1.1 200 OK\r\n", *[b"x-name: a\r\n" * 1000] * 20)


def test_request_has_the_length_of_its_body():
    assert encode_request("GET", "/a", headers={"host": "h"}, body=b"") == b"GET /a HTTP/1.1\r\nhost: h\r\n\r\n"
    assert encode_request("POST", "/a", headers={}, body=b"{}").endswith(b"content-length: 2\r\n\r\n{}")
    assert b"content-length: 0" in encode_request("POST", "/a", headers={}, body=b"")
