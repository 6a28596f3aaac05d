"""Compression of long bodies with gzip, for clients that accept it."""

import asyncio
import re
import zlib
from collections.abc import MutableMapping
from dataclasses import replace

from roost.api.http import Request, Response

# Minimum size in bytes: the compression of a shorter body saves no packet.
_SIZE_MIN = 1024
# Size in bytes from which a thread compresses, at about 5 ms per MiB; zlib releases the interpreter meanwhile.
_LONG = 1 << 16
# Level 1 costs a quarter of the time of level 5, and its result is only a tenth longer.
_LEVEL = 1
_GZIP_FRAME = 31  # ``wbits`` for the largest window in the format of gzip
_ENCODING = re.compile(r"[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*(?:;[ \t]*[qQ]=([0-9.]{1,5})[ \t]*)?\Z")
_VARY = "accept-encoding"


def accepts_gzip(header: str | None) -> bool:
    """Return whether a client accepts gzip.

    Args:
        header: ``accept-encoding``; None: the client sent none, and accepts only plain bodies here.

    Source:
        RFC 9110, 12.5.3; a malformed member counts as absent.

    >>> accepts_gzip("deflate, gzip;q=0.5")
    True
    >>> accepts_gzip("gzip;q=0, *")
    False
    """
    qualities: dict[str, float] = {}
    for member in (header or "").split(","):
        match = _ENCODING.match(member)
        if match is not None:
            qualities.setdefault(match[1].lower().removeprefix("x-"), _quality_of(match[2]))
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def _quality_of(text: str | None) -> float:
    try:
        return 1.0 if text is None else float(text)
    except ValueError:
        return 0.0


async def compress(request: Request, response: Response) -> Response:
    """Return a response with a compressed body if it is long and its client accepts gzip; streams stay."""
    body = response.body
    is_plain = response.stream is None and "content-encoding" not in response.headers
    if len(body) < _SIZE_MIN or not is_plain or not accepts_gzip(request.headers.get("accept-encoding")):
        return response
    short = gzip_body(body) if len(body) < _LONG else await asyncio.to_thread(gzip_body, body)
    headers = {**response.headers, "content-encoding": "gzip", "content-length": str(len(short))}
    return replace(response, body=short, headers=headers)


def add_vary(headers: MutableMapping[str, str]) -> None:
    """Declare that a response depends on the accepted encodings, too."""
    headers["vary"] = f"{headers['vary']}, {_VARY}" if "vary" in headers else _VARY


def gzip_body(body: bytes) -> bytes:
    """Return a body in the format of gzip."""
    return zlib.compress(body, _LEVEL, _GZIP_FRAME)
