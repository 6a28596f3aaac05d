"""Agents as the API shows them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ShownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The agent of a host."""

    host: Annotated[str, Meta(description="Name of the service.")]
    state: Annotated[
        Literal["arriving", "ready", "gone"],
        Meta(
            description="arriving: it has guests that are not its own any more; ready: it takes orders; gone: it left, "
            "or was not heard for too long."
        ),
    ]
    up: Annotated[bool, Meta(description="Whether it is not gone, and was heard lately.")]
    heard_at_s: Annotated[float, Meta(description="When it was heard, in seconds since the epoch.")]
    registered_at_s: Annotated[float, Meta(description="When its run began, in seconds since the epoch.")]
    run: Annotated[str, Meta(description="One life of its process.")]
    fence: Annotated[int, Meta(description="Rises with each run.")]
    cell: Annotated[str, Meta(description="Whose conductor sends it orders; empty: the only one.")]
    driver: Annotated[str, Meta(description="What runs its guests.")]
    software: Annotated[str, Meta(description="What it is, with its version.")]
    nodes: Annotated[list[str], Meta(description="Nodes of the host that it reported.")]
    disabled: Annotated[bool, Meta(description="Whether nothing new is placed on the host.")]


class AgentsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Agents, by the names of their hosts."""

    agents: list[ShownAgent]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null: this is the last one.")]


class AgentsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which agents are shown."""

    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="So many at most.")] = 100
    cursor: Annotated[str, Meta(description="next of the page before.")] = ""


class ReportQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which agent reports."""

    run: Annotated[str, Meta(description="Only if this run is in charge; left out: whichever is.")] = ""


class LeaveQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which agent leaves."""

    run: Annotated[str, Meta(description="Only if it is this run; left out: whichever it is.")] = ""
