"""Drains of hosts in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.conductor.intake.accept_drain import AT_ONCE_MAX

# Maximum number of further hosts in a plan.
WITH_HOSTS_MAX = 1_000


class DrainBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a drain."""

    dry_run: Annotated[bool, Meta(description="Whether to plan only: no instance moves.")] = False
    at_once: Annotated[
        Annotated[int, Meta(ge=1, le=AT_ONCE_MAX)],
        Meta(description="Maximum number of instances that move at the same time."),
    ] = 2
    disable: Annotated[
        bool, Meta(description="Whether to disable the service first, so that no new instances arrive.")
    ] = True
    with_hosts: Annotated[
        Annotated[list[str], Meta(max_length=WITH_HOSTS_MAX)],
        Meta(description="Only in a dry run: further hosts that are drained after this one, and take no instance."),
    ] = []


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """The planned move of one instance."""

    uuid: Annotated[str, Meta(description="Uuid of the instance.")]
    name: Annotated[str, Meta(description="Name of the instance.")]
    status: Annotated[str, Meta(description="Status of the instance.")]
    source: Annotated[str, Meta(description="Service that the instance leaves.")]
    how: Annotated[str, Meta(description="live_migrate, migrate or offload; empty: it stays.")]
    host: Annotated[str, Meta(description="Service of the target host; empty: none.")]
    problem: Annotated[str, Meta(description="Reason for staying.")]


class DrainPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The planned moves of a drain, provided that nothing else changes."""

    host: Annotated[str, Meta(description="Name of the service.")]
    moves: Annotated[list[PlannedMove], Meta(description="One move per instance, in order of their start.")]
    problems: Annotated[
        dict[str, str], Meta(description="The hosts of with_hosts that cannot be drained, with the reason.")
    ] = {}
