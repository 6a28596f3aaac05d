"""Long bodies are compressed for clients that accept gzip."""

import asyncio
import gzip
import threading

import pytest

from roost.api.http import Request, Response
from roost.api.transfer import compression
from roost.api.transfer.compression import accepts_gzip, add_vary, compress


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [
        (None, False),
        ("", False),
        ("identity", False),
        ("br, deflate", False),
        ("gzip", True),
        ("GZip", True),
        ("x-gzip", True),
        ("br;q=1.0, gzip;q=0.2", True),
        ("deflate,gzip ; q=0.001", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *;q=1", False),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=1.2.3", False),
        ("gzip;q=high", False),
        ("gzip;", False),
        ("pigzip", False),
    ],
)
def test_accepted_encodings(header, is_accepted):
    assert accepts_gzip(header) == is_accepted


def compressed(response, accept="gzip"):
    """Return the compressed form of a response."""
    request = Request(method="GET", path="/things", headers={} if accept is None else {"accept-encoding": accept})
    return asyncio.run(compress(request, response))


def test_long_body_is_compressed_with_its_length():
    body = b'{"host": "host-1"}' * 100
    response = compressed(Response(status=201, body=body, headers={"content-length": "1800", "location": "/x"}))
    assert gzip.decompress(response.body) == body
    assert response.headers == {
        "content-length": str(len(response.body)),
        "location": "/x",
        "content-encoding": "gzip",
    }
    assert (response.status, len(response.body) < 100) == (201, True)


@pytest.mark.parametrize("size", [0, 1, 1023])
def test_short_body_stays(size):
    response = Response(body=b"a" * size)
    assert compressed(response) is response


@pytest.mark.parametrize("accept", [None, "identity", "gzip;q=0"])
def test_body_stays_for_other_clients(accept):
    response = Response(body=b"a" * 5000)
    assert compressed(response, accept) is response


def test_encoded_body_stays():
    response = Response(body=b"a" * 5000, headers={"content-encoding": "br"})
    assert compressed(response) is response


@pytest.mark.parametrize(("size", "is_here"), [((1 << 16) - 1, True), (1 << 16, False)])
def test_very_long_body_is_compressed_in_another_thread(monkeypatch, size, is_here):
    threads, body = [], b"a" * size

    def note_thread(data):
        threads.append(threading.current_thread())
        return gzip.compress(data)

    monkeypatch.setattr(compression, "gzip_body", note_thread)
    assert gzip.decompress(compressed(Response(body=body)).body) == body
    assert [each is threading.main_thread() for each in threads] == [is_here]


def test_vary_joins_an_earlier_one():
    alone, joined = {}, {"vary": "origin"}
    add_vary(alone)
    add_vary(joined)
    assert (alone, joined) == ({"vary": "accept-encoding"}, {"vary": "origin, accept-encoding"})
