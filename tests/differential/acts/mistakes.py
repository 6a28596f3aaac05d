"""Spoil a valid request in one place."""

import json
from dataclasses import replace
from typing import Any

from tests.differential.exchange import Request
from tests.differential.scene import JSON, VERSION, Act, ActOf, Scene

MALFORMED = (
    b"{",
    b"",
    b" ",
    b"}",
    b"[",
    b"{'a': 1}",
    b'{"a": }',
    b'{"a" 1}',
    b'{"a": 1,}',
    b'{"a": 1} x',
    b"{a: 1}",
    b"\xff\xfe",
    b'{"a": "\xff"}',
    b'\xef\xbb\xbf{"a": 1}',
    b'{"a": "b\nc"}',
    b'{"a": "\\q"}',
    b'{"a": NaN}',
    b"nul",
    b"01",
    b"-",
    b'"abc',
    b"null",
    b"[]",
    b'"x"',
    b"1",
    b"true",
    b'{"a":1,"a":2}',
    b"// c\n{}",
    b"\x00",
    b"[1,",
    b'{"a": [}',
)
VERSIONS = (
    "placement 1.40",
    "placement 2.0",
    "placement 0.9",
    "placement 1",
    "placement 1.2.3",
    "placement pony.horse",
    "placement",
    "compute 2.1",
    "compute 2.1, placement 1.4",
    "placement 1.4, placement 1.5",
    "placement 1.x",
    "1.10",
    "latest",
    ",",
)
ACCEPTS = (
    "text/html",
    "text/plain",
    "application/xml",
    "*/*",
    "application/json",
    "application/*",
    "text/html, application/json",
    "application/json;q=0",
    "text/plain;q=0.5, */*;q=0.1",
    "text/*",
)
TYPES = ("text/plain", "application/json; charset=utf-8", "APPLICATION/JSON", "application/xml", "json", "")
TOKENS = ("admin", "admin:p1", "bob", "bob:p1", ":", "a:b:c", "ADMIN")
ROLES = ("admin", "service", "reader", "member,admin", "Admin", "")
VALUES: tuple[Any, ...] = (
    None,
    "",
    "x",
    -1,
    0,
    1.5,
    2.0,
    True,
    [],
    {},
    [1],
    {"a": 1},
    10**30,
    "x" * 300,
    "\u00e9\U0001f600",
    2_147_483_648,
    "no uuid",
)


def spoil(scene: Scene, act: ActOf) -> Act:
    """Send a spoilt version of the last request of an act."""
    requests = act(scene)
    last: Request | None = None
    try:
        request = next(requests)
        while request.method == "GET" and request.path.count("/") == 2 and last is None:
            # This is probably a lookup of a generation; the next request is the last one.
            last = request
            request = requests.send((yield request))
        last = request
    except StopIteration:
        pass
    requests.close()
    if last is None:
        return
    answer = yield scene.draw.choice(WAYS)(scene, last)
    if answer.status < 300 and last.method != "GET":
        scene.world.forget()


def _malformed(scene: Scene, request: Request) -> Request:
    if request.body is None:
        return _key(scene, request)
    return replace(request, body=scene.draw.choice(MALFORMED))


def _value(scene: Scene, request: Request) -> Request:
    """Change, remove, add or rename one value in the body."""
    try:
        document = json.loads(request.body or b"")
    except ValueError:  # The body is already spoilt.
        return _key(scene, request)
    places = list(_places(document))
    if not places or scene.chance(0.03):
        return replace(request, body=json.dumps(scene.draw.choice(VALUES)).encode())
    holder, key = scene.draw.choice(places)
    way = scene.draw.choice(("change", "change", "drop", "add", "rename"))
    if way == "drop":
        del holder[key]
    elif way == "change" or isinstance(holder, list):
        holder[key] = scene.draw.choice(VALUES)
    elif way == "add":
        holder[scene.draw.choice(("extra", "uuid", "Ä", "generation"))] = scene.draw.choice(VALUES)
    else:
        holder[scene.draw.choice(("extra", "not-a-name", ""))] = holder.pop(key)
    return replace(request, body=json.dumps(document).encode())


def _key(scene: Scene, request: Request) -> Request:
    """Add a parameter to the query."""
    draw = scene.draw
    added = draw.choice(
        ("bogus=1", "bogus", "=", "limit=1", "name=%C3%A4", "uuid=1", "project_id=p1", "&&", "x%5B%5D=1", "name=a;b")
    )
    return replace(request, path=f"{request.path}{'&' if '?' in request.path else '?'}{added}")


def _path(scene: Scene, request: Request) -> Request:
    path, mark, query = request.path.partition("?")
    end = "%0A" if request.method == "GET" else "%20"
    changed = scene.draw.choice(
        (
            f"{path}/",
            f"/{path}",
            f"{path}//",
            f"{path}/bogus",
            path.upper(),
            path.replace("_", "%5F"),
            path[:-1],
            path + end,
            path.replace("e", "%65", 1),
            f"{path}%2F",
            "/nonexistent",
            f"{path}.json",
        )
    )
    return replace(request, path=changed + mark + query)


def _method(scene: Scene, request: Request) -> Request:
    return replace(
        request, method=scene.draw.choice(("PATCH", "OPTIONS", "HEAD", "POST", "PUT", "DELETE", "GET", "BREW"))
    )


def _version(scene: Scene, request: Request) -> Request:
    return _with(request, VERSION, scene.draw.choice(VERSIONS))


def _accept(scene: Scene, request: Request) -> Request:
    return _with(request, "accept", scene.draw.choice(ACCEPTS))


def _content_type(scene: Scene, request: Request) -> Request:
    if request.body is None:
        return replace(request, body=scene.draw.choice((b"{}", b"x", b"")), headers=(*request.headers, JSON))
    if scene.chance(0.3):
        return replace(request, headers=tuple(pair for pair in request.headers if pair[0] != "content-type"))
    return _with(request, "content-type", scene.draw.choice(TYPES))


def _length(scene: Scene, request: Request) -> Request:
    """Send an invalid length, without a body."""
    headers = (*request.headers, ("content-length", scene.draw.choice(("abc", "1.5", "0x10", "five"))))
    return replace(request, headers=headers, body=None)


def _token(scene: Scene, request: Request) -> Request:
    headers = tuple(pair for pair in request.headers if pair[0] != "x-auth-token")
    if scene.chance(0.3):
        return replace(request, headers=headers)
    headers = (("x-auth-token", scene.draw.choice(TOKENS)), *headers)
    if scene.chance(0.5):
        headers = (*headers, ("x-roles", scene.draw.choice(ROLES)))
    if scene.chance(0.2):
        headers = (*headers, ("openstack-system-scope", scene.draw.choice(("all", "none"))))
    if scene.chance(0.2):
        headers = (*headers, ("x-project-id", "p1"))
    return replace(request, headers=headers)


def _two(scene: Scene, request: Request) -> Request:
    """Spoil the request twice, to compare which fault is found first."""
    for way in scene.draw.sample(WAYS[:-1], 2):
        request = way(scene, request)
    return request


def _with(request: Request, name: str, value: str) -> Request:
    return replace(request, headers=(*(pair for pair in request.headers if pair[0] != name), (name, value)))


def _places(document: Any) -> Any:
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in pairs:
        yield document, key
        yield from _places(value)


WAYS = (
    _malformed,
    _value,
    _value,
    _value,
    _value,
    _key,
    _path,
    _method,
    _version,
    _accept,
    _content_type,
    _token,
    _length,
    _two,
)
