"""Standings of instances. Agents look them up before they drop saved images or release allocations without a guest."""

from typing import Annotated

import msgspec
from msgspec import Meta

STANDINGS_MAX = 1000
_Uuid = Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$(?!\n)")]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The standing of an instance: its host, and whether it is deleted or busy."""

    is_deleted: Annotated[bool, Meta(description="Whether the instance is deleted.")] = False
    host: Annotated[str, Meta(description="Name of its host; empty: it has no host.")] = ""
    is_busy: Annotated[bool, Meta(description="Whether an operation or an unfinished move involves it.")] = False


class Holders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Instances and other consumers with allocations or saved images on a host."""

    instances: Annotated[tuple[_Uuid, ...], Meta(max_length=STANDINGS_MAX, description="Uuids of the consumers.")] = ()


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """Standings of the known instances."""

    instances: Annotated[
        dict[str, Standing],
        Meta(description="Standings by uuid, spelled as in the request; unknown instances are omitted."),
    ]
