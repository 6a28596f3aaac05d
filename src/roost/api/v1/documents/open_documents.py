"""Documents of the server about itself, which need no authentication."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources

from roost.api.http import Response
from roost.api.v1.call import JSON
from roost.api.v1.documents import openapi
from roost.api.v1.wire import problem_types

_PAGE = "/docs"
_PAGE_FILE = "explorer.html"
_CLOSED = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)
_BODIES: Mapping[str, Callable[[], bytes]] = {openapi.PATH: openapi.body, problem_types.PATH: problem_types.body}
PATHS = frozenset({*_BODIES, _PAGE})


def respond(path: str) -> Response:
    """Return the document at one of ``PATHS``."""
    return _respond_page() if path == _PAGE else Response(body=_BODIES[path](), headers={"content-type": JSON})


@cache
def _respond_page() -> Response:
    """Return the page that shows the OpenAPI document in a browser.

    The browser runs only the script in the page, known by its hash, and loads only from this server.
    """
    body = resources.files(__package__).joinpath(_PAGE_FILE).read_bytes()
    sources = "; ".join(f"{kind.decode()}-src '{_hash_of(text)}'" for kind, text in _INLINE.findall(body))
    policy = f"default-src 'none'; {sources}; connect-src 'self'; {_CLOSED}"
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
    return Response(body=body, headers=headers)


def _hash_of(text: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}"
