"""The first program that reads each kind of write in the feed.

A new kind is written only when all live processes read it. Fields are only appended, with a default, and older programs
ignore them. So a field that older programs must not ignore needs a new kind.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import get_args

import msgspec

from roost.errors import Unavailable
from roost.model.writes import Item, Write

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


def check_readable(items: Sequence[Item], lowest_schema: str) -> None:
    """Refuse kinds of writes that a live process of an older program cannot read.

    Args:
        items: of a commit.
        lowest_schema: the lowest schema of the live programs; see ``newer_kinds``.

    Raises:
        Unavailable: there is such a write.
    """
    newer = newer_kinds(lowest_schema)
    if newer and any(type(write) in newer for item in items for write in item.writes):
        raise Unavailable(
            "processes of an older Roost cannot read this change: upgrade all of them, as `roost db status` lists"
        )
