"""What became of instances: what the agent of a host may ask of those that it finds something of and that it lacks."""

from typing import Annotated

import msgspec
from msgspec import Meta

ASKED_MAX = 1000
_Uuid = Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$(?!\n)")]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an instance that an agent does not have."""

    is_deleted: Annotated[bool, Meta(description="Whether it is no more.")] = False
    host: Annotated[str, Meta(description="The service where it is; empty: nowhere yet.")] = ""
    is_busy: Annotated[bool, Meta(description="Whether somebody works on it, or a move of it is not settled.")] = False


class Holders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Instances and other consumers of which there is something on a host: allocations, or saved images."""

    instances: Annotated[
        tuple[_Uuid, ...], Meta(max_length=ASKED_MAX, description="Their uuids, whatever they are.")
    ] = ()


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """What became of some of them."""

    instances: Annotated[
        dict[str, Standing], Meta(description="By uuid, as it was asked; those that nobody knows are left out.")
    ]
