"""Hosts that are left by their instances, as the API reads and writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.conductor.intake.accept_drain import AT_ONCE_MAX


class DrainBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the instances of a host go elsewhere."""

    dry_run: Annotated[bool, Meta(description="Whether it is only said where they would go.")] = False
    at_once: Annotated[
        Annotated[int, Meta(ge=1, le=AT_ONCE_MAX)], Meta(description="So many are on their way together.")
    ] = 2
    disable: Annotated[bool, Meta(description="Whether the service is disabled first, so that nothing new comes.")] = (
        True
    )


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of one instance of the host."""

    uuid: Annotated[str, Meta(description="Of the instance.")]
    name: Annotated[str, Meta(description="Its name.")]
    status: Annotated[str, Meta(description="Its status.")]
    how: Annotated[str, Meta(description="live_migrate, migrate or offload; empty: it stays.")]
    host: Annotated[str, Meta(description="The service that it would go to; empty: none.")]
    problem: Annotated[str, Meta(description="Why it stays.")]


class DrainPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of the instances of a host, if nothing else changed meanwhile."""

    host: Annotated[str, Meta(description="The service.")]
    moves: Annotated[list[PlannedMove], Meta(description="One an instance, in the order in which they begin.")]
