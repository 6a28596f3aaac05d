"""Drains of hosts in requests and answers."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.conductor.intake.accept_drain import AT_ONCE_MAX


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


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """The planned move of one instance."""

    uuid: Annotated[str, Meta(description="Uuid of the instance.")]
    name: Annotated[str, Meta(description="Name of the instance.")]
    status: Annotated[str, Meta(description="Status of the instance.")]
    how: Annotated[str, Meta(description="live_migrate, migrate or offload; empty: it stays.")]
    host: Annotated[str, Meta(description="Service of the target host; empty: none.")]
    problem: Annotated[str, Meta(description="Reason for staying.")]


class DrainPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The planned moves of a drain, provided that nothing else changes."""

    host: Annotated[str, Meta(description="Name of the service.")]
    moves: Annotated[list[PlannedMove], Meta(description="One move per instance, in order of their start.")]
