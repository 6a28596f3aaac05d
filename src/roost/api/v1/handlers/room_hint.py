"""A short search for moves that make room for a refused request."""

import msgspec

from roost.api.v1.call import Call
from roost.api.v1.permission import is_allowed
from roost.api.v1.schemas.decisions import RoomHint
from roost.conductor.intake.movable_instances import movable_instances
from roost.errors import BadRequest, NotFound, OverBudget
from roost.model.evidence.explain import Why
from roost.scheduler.plans.make_room import make_room, may_make_room

_POLICY = "roost:plans:make-room"
_MOVES_MAX = 3
_STEPS_MAX = 2_000  # a tenth of a plan's own search


def find_room(call: Call, why: Why) -> RoomHint | None:
    """Return a plan that makes room for a refused request on the present fleet.

    None: the search found no plan within its steps, or within the rest of the budget of the answer; or the request is
    granted, a move, for several instances, or no longer valid; or the client may not plan.
    """
    request = why.request
    if why.decision.is_granted or request.count != 1 or request.move is not None:
        return None
    if call.product.remote is not None or not is_allowed(call.allows, _POLICY, call.identity):
        return None
    residents = movable_instances(
        call.agents.reader(call.current),
        call.current.store.document,
        may_move=lambda status: call.can_see_all or call.can_see(status.project_id),
    )
    new = msgspec.structs.replace(request, instance_uuids=())
    try:
        # The copy of a large fleet takes longer than the rest of the answer.
        if not may_make_room(call.product.scheduler, new, state=call.current.state):
            return None
        plan = make_room(call.product.fork, new, residents, moves_max=_MOVES_MAX, steps_max=_STEPS_MAX)
    except (BadRequest, NotFound, OverBudget):
        return None
    return RoomHint(moves=len(plan.moves), host=plan.host) if plan.host else None
