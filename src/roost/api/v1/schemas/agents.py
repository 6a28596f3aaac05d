"""Agents in requests and answers."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ShownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The agent of a host."""

    host: Annotated[str, Meta(description="Name of the service.")]
    state: Annotated[
        Literal["arriving", "ready", "gone"],
        Meta(
            description="arriving: guests that no longer belong to it are being removed; ready: it takes orders; gone: "
            "it deregistered, or sent no heartbeat for too long."
        ),
    ]
    up: Annotated[bool, Meta(description="Whether it is not gone, and sent a heartbeat in time.")]
    heard_at_s: Annotated[float, Meta(description="Time of the last heartbeat, in seconds since the epoch.")]
    registered_at_s: Annotated[float, Meta(description="Start of its run, in seconds since the epoch.")]
    run: Annotated[str, Meta(description="Uuid of the run of its process.")]
    fence: Annotated[int, Meta(description="Number of the run; it rises with each run.")]
    cell: Annotated[str, Meta(description="Cell of its conductor; empty: the only cell.")]
    driver: Annotated[str, Meta(description="Name of the driver that runs its guests.")]
    software: Annotated[str, Meta(description="Name and version of the agent.")]
    nodes: Annotated[list[str], Meta(description="Names of the nodes that it reported.")]
    disabled: Annotated[bool, Meta(description="Whether the scheduler skips the host.")]


class AgentsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of agents, ordered by host name."""

    agents: list[ShownAgent]
    next: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]


class AgentsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of agents."""

    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="Maximum number of agents.")] = 100
    cursor: Annotated[str, Meta(description="The value next of the previous page.")] = ""


class ReportQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The run that reports."""

    run: Annotated[str, Meta(description="Refuse unless this run is in charge; empty: accept any run.")] = ""


class LeaveQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The run that leaves."""

    run: Annotated[str, Meta(description="Refuse unless this run is in charge; empty: accept any run.")] = ""
