"""Queries of the columns of the fleet, and of its changes."""

from typing import Annotated

import msgspec
from msgspec import Meta


class ColumnsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns that a client needs."""

    position: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Smallest position that suffices, such as that of an order to load the columns again."),
    ] = None


class NamesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The generation of a client."""

    generation: Annotated[
        str | None, Meta(description="The generation in the head of the columns; the present one by default.")
    ] = None


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a stream of events contains."""

    fleet: Annotated[bool, Meta(description="Whether to also send changes of hosts, as events fleet.")] = False
    after: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Position in the head of the columns of the client; required with fleet."),
    ] = None
