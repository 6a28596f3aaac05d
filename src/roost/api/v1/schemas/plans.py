"""Plans in requests; the answers are plans of the model."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.api.v1.schemas.decisions import InstanceRequestBody
from roost.model.evidence.room_plan import MOVES_LIMIT, MOVES_MAX


class RoomBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for a plan that makes room: about a request, or about that of a stored decision."""

    request: Annotated[
        InstanceRequestBody | None, Meta(description="The request, for one instance; null: that of the decision.")
    ] = None
    decision: Annotated[str | None, Meta(description="Uuid of a stored decision; null: see request.")] = None
    moves: Annotated[
        Annotated[int, Meta(ge=1, le=MOVES_LIMIT)], Meta(description="Maximum number of moves.")
    ] = MOVES_MAX
