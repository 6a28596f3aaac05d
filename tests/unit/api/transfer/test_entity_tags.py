"""A client that has the content of a response gets a 304."""

import asyncio

import pytest

from roost.api.http import Request, Response
from roost.api.transfer.entity_tags import has_tag, revalidate

BODY = b'{"hosts": []}'


def respond(response, *, method="GET", if_none_match=None):
    """Return the response with its tag, or the 304."""
    headers = {} if if_none_match is None else {"if-none-match": if_none_match}
    return asyncio.run(revalidate(Request(method=method, path="/hosts", headers=headers), response))


@pytest.mark.parametrize(
    ("header", "is_same"),
    [
        (None, False),
        ("", False),
        ("*", True),
        (" * ", True),
        ('"a"', True),
        ('W/"a"', True),
        ('"b",W/"a"', True),
        ('"aa"', False),
        ('"b, a"', False),
        ("a", False),
        ('"A"', False),
        ('"a', False),
    ],
)
def test_tags_of_clients(header, is_same):
    assert has_tag(header, '"a"') == is_same


@pytest.mark.parametrize("size", [1, 1 << 17])
def test_same_content_is_omitted(size):
    response = Response(body=BODY * size, headers={"content-type": "application/json", "content-length": "9", "x": "y"})
    first = respond(response)
    assert first.body == response.body
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    assert first.headers == {**response.headers, "etag": tag, "cache-control": "private, no-cache"}
    again = respond(response, if_none_match=tag)
    assert (again.status, again.body) == (304, b"")
    assert again.headers == {"x": "y", "etag": tag, "cache-control": "private, no-cache"}


def test_other_content_has_another_tag():
    tag = respond(Response(body=BODY)).headers["etag"]
    changed = respond(Response(body=BODY + b" "), if_none_match=tag)
    assert (changed.status, changed.headers["etag"] == tag) == (200, False)


@pytest.mark.parametrize(
    ("method", "response"),
    [
        ("POST", Response(body=BODY)),
        ("GET", Response(status=404, body=BODY)),
        ("GET", Response(status=204)),
        ("GET", Response()),
    ],
)
def test_other_responses_stay(method, response):
    assert respond(response, method=method, if_none_match="*") is response
