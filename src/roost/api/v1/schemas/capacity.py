"""Questions about capacity."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.schemas.decisions import FleetChangeBody
from roost.model.documents.request_document import RequestDocument
from roost.model.evidence.capacity import LIMIT, By

_Limit = Annotated[
    Annotated[int, Meta(ge=1, le=LIMIT)] | None,
    Meta(description="Upper bound of the count; null: 10,000,000, or 10,000 if instances are placed one by one."),
]


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
