"""Questions about capacity, and for plans of moves."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.schemas.decisions import FleetChangeBody, InstanceRequestBody
from roost.model.documents.request_document import RequestDocument
from roost.model.evidence.capacity import LIMIT
from roost.model.evidence.move_plans import FLEET_MOVES_LIMIT, FLEET_MOVES_MAX, MOVES_LIMIT, MOVES_MAX
from roost.scheduler.explain.capacity_count import By

_Limit = Annotated[
    Annotated[int, Meta(ge=1, le=LIMIT)] | None,
    Meta(description="Upper bound of the count; null: 10,000,000, or 10,000 if instances are placed one by one."),
]
_FleetMoves = Annotated[Annotated[int, Meta(ge=1, le=FLEET_MOVES_LIMIT)], Meta(description="Maximum number of moves.")]
_Zone = Annotated[str | None, Meta(description="Only hosts of this availability zone; null: all hosts.")]


class CapacityQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A capacity question about a flavor."""

    flavor: Annotated[str, Meta(description="Name of a stored flavor, or of a flavor in a stored decision.")]
    by: Annotated[
        By | None, Meta(description="Also count each part of the fleet; null: count the whole fleet only.")
    ] = None
    limit: _Limit = None


class CapacityColumnsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question about the capacity of each host for a flavor."""

    flavor: Annotated[str, Meta(description="Name of a stored flavor, or of a flavor in a stored decision.")]
    limit: _Limit = None


class CapacityColumnsBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question about the capacity of each host for a request."""

    request: Annotated[RequestDocument, Meta(description="The request; its count and uuids are ignored.")]
    limit: _Limit = None


class CapacityBody(FleetChangeBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A capacity question about a request."""

    request: Annotated[RequestDocument, Meta(description="The request; its count and uuids are ignored.")]
    by: Annotated[tuple[By, ...], Meta(description="Also count each of these parts of the fleet.")] = ()
    limit: _Limit = None


class RoomBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for a plan to make room: for a request, or for the request of a stored decision."""

    request: Annotated[
        InstanceRequestBody | None, Meta(description="The request, for one instance; null: that of the decision.")
    ] = None
    decision: Annotated[str | None, Meta(description="Uuid of a stored decision; null: see request.")] = None
    moves: Annotated[Annotated[int, Meta(ge=1, le=MOVES_LIMIT)], Meta(description="Maximum number of moves.")] = (
        MOVES_MAX
    )


class ConsolidationBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for a plan to empty hosts."""

    hosts: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of hosts to empty; null, also for share: as many as possible."),
    ] = None
    share: Annotated[
        Annotated[float, Meta(gt=0, le=100)] | None,
        Meta(description="Instead of hosts: percent of the hosts in view, rounded up."),
    ] = None
    zone: _Zone = None
    moves: _FleetMoves = FLEET_MOVES_MAX


class BalanceBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for a plan to balance hosts."""

    resource_class: Annotated[str, Meta(description="Resource class of the used shares.")] = "VCPU"
    zone: _Zone = None
    moves: _FleetMoves = FLEET_MOVES_MAX
