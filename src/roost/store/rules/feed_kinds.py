"""The first program that reads each kind of write in the feed.

A new kind is written only when all live processes read it. Fields are only appended, with a default, and older programs
ignore them. So a field that older programs must not ignore needs a new kind.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import get_args

import msgspec

from roost.model.writes import Write

# Programs without heartbeats read the kinds of this schema version.
BEFORE_HEARTBEATS = "0010"
# The schema version of the first program with the kind.
FIRST_SCHEMAS: Mapping[type[msgspec.Struct], str] = MappingProxyType(dict.fromkeys(get_args(Write), BEFORE_HEARTBEATS))


@cache
def newer_kinds(schema: str) -> frozenset[type[msgspec.Struct]]:
    """Return the kinds that a program does not read.

    Args:
        schema: its newest schema version; empty: it is older than heartbeats.
    """
    known = schema or BEFORE_HEARTBEATS
    return frozenset(kind for kind, first in FIRST_SCHEMAS.items() if first > known)
