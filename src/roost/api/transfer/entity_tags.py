"""Entity tags of responses: a client that has the content already gets a 304 without it."""

import asyncio
import hashlib
import re
from dataclasses import replace

from roost.api.http import Request, Response

# Size in bytes from which a thread computes the tag, at about 1 ms per MiB; the hash releases the interpreter.
_LONG = 1 << 16
_TAG_BYTES = 16
_TAG = re.compile(r'(?:W/)?("[^"]*")')
# Clients must ask again before they use a kept response, since any client may change the content.
_CACHE_CONTROL = "private, no-cache"
# Headers that describe the omitted body.
_OF_BODY = frozenset({"content-type", "content-length"})


async def revalidate(request: Request, response: Response) -> Response:
    """Return the response to a GET with the tag of its content, or a 304 if the client has this content.

    The tag is a hash of the body: no revision number identifies the content, which also depends on the clock, on claims
    that are not durable yet, and on the client. The tag is weak, because compression changes the bytes.
    """
    if request.method != "GET" or response.status != 200 or response.stream is not None or not response.body:
        return response
    body = response.body
    tag = _tag_of(body) if len(body) < _LONG else await asyncio.to_thread(_tag_of, body)
    headers = {**response.headers, "etag": f"W/{tag}", "cache-control": _CACHE_CONTROL}
    if not has_tag(request.headers.get("if-none-match"), tag):
        return replace(response, headers=headers)
    return Response(status=304, headers={name: text for name, text in headers.items() if name not in _OF_BODY})


def has_tag(header: str | None, tag: str) -> bool:
    """Return whether a client has the content with a tag.

    Args:
        header: ``if-none-match``; None: the client has no content.

    Source:
        RFC 9110, 13.1.2, with the weak comparison.

    >>> has_tag('W/"1", "2"', '"2"'), has_tag("*", '"2"'), has_tag('"21"', '"2"')
    (True, True, False)
    """
    return header is not None and (header.strip() == "*" or tag in _TAG.findall(header))


def _tag_of(body: bytes) -> str:
    return f'"{hashlib.blake2b(body, digest_size=_TAG_BYTES).hexdigest()}"'
