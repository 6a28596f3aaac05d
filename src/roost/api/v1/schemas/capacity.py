"""Questions about capacity as the API reads them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.documents.request_document import RequestDocument
from roost.model.evidence.capacity import LIMIT
from roost.scheduler.explain.capacity_count import By

_Limit = Annotated[
    Annotated[int, Meta(ge=1, le=LIMIT)] | None,
    Meta(description="Where counting stops; null: 10,000,000, and 10,000 where instances are placed one by one."),
]


class CapacityQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many more of a flavor fit."""

    flavor: Annotated[str, Meta(description="Name of a flavor that decisions were made for.")]
    by: Annotated[By | None, Meta(description="Parts of the fleet to count too; none: only all of it.")] = None
    limit: _Limit = None


class CapacityBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many more of a request fit."""

    request: Annotated[RequestDocument, Meta(description="What is asked for; its count and uuids do not matter.")]
    by: Annotated[tuple[By, ...], Meta(description="Parts of the fleet to count too.")] = ()
    limit: _Limit = None
