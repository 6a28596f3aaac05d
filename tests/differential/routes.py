"""The routes of the Placement API, with their first minor versions, for counting requests."""

import re
from dataclasses import dataclass

MINOR_MAX = 39
PROVIDER = "/resource_providers/{provider}"


@dataclass(frozen=True)
class Route:
    """A path and a method."""

    method: str
    path: str
    since: int

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


ROUTES = tuple(
    Route(method, path, since)
    for path, methods in {
        "/": {"GET": 0},
        "/resource_providers": {"GET": 0, "POST": 0},
        PROVIDER: {"GET": 0, "PUT": 0, "DELETE": 0},
        f"{PROVIDER}/inventories": {"GET": 0, "POST": 0, "PUT": 0, "DELETE": 5},
        f"{PROVIDER}/inventories/{{class}}": {"GET": 0, "PUT": 0, "DELETE": 0},
        f"{PROVIDER}/usages": {"GET": 0},
        f"{PROVIDER}/allocations": {"GET": 0},
        f"{PROVIDER}/aggregates": {"GET": 1, "PUT": 1},
        f"{PROVIDER}/traits": {"GET": 6, "PUT": 6, "DELETE": 6},
        "/resource_classes": {"GET": 2, "POST": 2},
        "/resource_classes/{class}": {"GET": 2, "PUT": 2, "DELETE": 2},
        "/traits": {"GET": 6},
        "/traits/{trait}": {"GET": 6, "PUT": 6, "DELETE": 6},
        "/usages": {"GET": 9},
        "/allocations": {"POST": 13},
        "/allocations/{consumer}": {"GET": 0, "PUT": 0, "DELETE": 0},
        "/allocation_candidates": {"GET": 10},
        "/reshaper": {"POST": 30},
    }.items()
    for method, since in methods.items()
)

_PATTERNS = {
    path: re.compile(re.sub(r"\\\{\w+\\\}", "[^/]*", re.escape(path)))
    for path in sorted({route.path for route in ROUTES})
}


def route_of(method: str, path: str) -> str:
    """Return the route of a request for counting."""
    bare = path.partition("?")[0]
    found = next((known for known, pattern in _PATTERNS.items() if pattern.fullmatch(bare)), None)
    if found is None:
        return f"{method} (no such path)"
    is_known = any(route.path == found and route.method == method for route in ROUTES)
    return f"{method} {found}" if is_known else f"(other method) {found}"


def minor_of(header: str | None) -> int | None:
    """Return the minor version of a version header, or None for an unusual header."""
    if header is None:
        return 0
    if header == "placement latest":
        return MINOR_MAX
    plain = re.fullmatch(r"placement 1\.(\d+)", header)
    return int(plain[1]) if plain and int(plain[1]) <= MINOR_MAX else None
