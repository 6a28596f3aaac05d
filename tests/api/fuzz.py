"""Random requests, and the checks that every response must pass."""

import json
import re

from hypothesis import strategies as st

UUID = "39e1e8fa-a385-4653-b90d-b931abfebe5d"
SETTINGS = """
header_timeout_s = 0.3
body_timeout_s = 0.3
keep_alive_s = 0.5
body_max_bytes = 100000
"""
NAMES = [
    "name",
    "uuid",
    "parent_provider_uuid",
    "resource_provider_generation",
    "inventories",
    "total",
    "reserved",
    "min_unit",
    "max_unit",
    "step_size",
    "allocation_ratio",
    "resource_class",
    "aggregates",
    "traits",
    "allocations",
    "resources",
    "resource_provider",
    "project_id",
    "user_id",
    "consumer_generation",
    "consumer_type",
    "mappings",
    "VCPU",
    "CUSTOM_X",
    UUID,
    "",
    "\x00",
    "é",
]
TEXTS = [
    "VCPU:1",
    "VCPU:0",
    "VCPU:" + "9" * 400,
    "in:A,B",
    "!in:" + UUID,
    "!",
    "in:",
    ",,,",
    UUID,
    "none",
    "isolate",
    "-1",
]


def values():
    """JSON of any shape, with known names and numbers and with random ones."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from([*NAMES, *TEXTS]),
        st.text(max_size=8),
        st.integers(-2, 2**70),
        st.sampled_from([10**400, -(2**63), 2**31, 2**31 - 1, 0, 1]),
        st.floats(allow_nan=True, allow_infinity=True),
    )
    names = st.sampled_from(NAMES) | st.text(max_size=4)
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5))


def bodies():
    """Request bodies: valid JSON, truncated JSON and random bytes."""
    whole = values().map(lambda value: json.dumps(value).encode())
    truncated = st.builds(lambda body, at: body[: at % (len(body) + 1)], whole, st.integers(0, 1000))
    malformed = st.sampled_from(
        [
            b"[" * 50_000,
            b'{"a":' * 20_000,
            b'{"name": "\xff\xfe"}',
            b'{"name": "\\ud800"}',
            b'{"name": "a", "name": "b"}',
            b"1" * 5000,
            b'{"name": 1e999999}',
            b"\xef\xbb\xbf{}",
            b"NaN",
            b'{"name": "' + b"x" * 5000 + b'"}',
            b"\x00",
        ]
    )
    return whole | truncated | malformed | st.binary(max_size=40)


def check(response):
    """Check that a response has no server error and no traceback."""
    for status in re.findall(rb"^HTTP/1.1 (\d+)", response, re.MULTILINE):
        assert int(status) < 500, response
    assert b"Traceback" not in response
    assert b".py" not in response


def send(server, method, target, body, lines):
    """Send one request as bytes."""
    start = f"{method} {target} HTTP/1.1\r\n".encode("latin-1", "replace")
    headers = [b"host: localhost", b"connection: close", b"content-length: %d" % len(body), *lines]
    return server.raw(start + b"\r\n".join(headers) + b"\r\n\r\n" + body)
