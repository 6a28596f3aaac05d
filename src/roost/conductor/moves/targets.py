"""The targets of a move: a decision chooses them before all other steps of the move."""

import msgspec

from roost.conductor.moves.move_decision import load_decision, retry_decision
from roost.conductor.operation.events import Event
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.step import Choose, Commit, Desk, View, advance, body_of
from roost.conductor.operation.step_table import Refusal, State, To
from roost.conductor.operation.watches import AT_ONCE
from roost.errors import RoostError
from roost.model.names import uuid_bytes
from roost.model.work.operation import InstanceMove


def choose(view: View, _desk: Desk, body: InstanceMove) -> Choose:
    """Choose hosts; the decision, granted or refused, is committed together with the next step."""
    return Choose(operation=advance(view, "send"), request=body.request, decision_uuid=body.decision_uuid)


def note_refusal(view: View, desk: Desk, error: RoostError) -> Commit:
    """Choose again after a lost race; otherwise go on without a target."""
    body = body_of(view.operation, InstanceMove)
    failed = msgspec.structs.replace(body, problem=describe_error(error))
    retry = retry_decision(view, desk, error, consumers=[uuid_bytes(body.migration_uuid)])
    return retry or Commit(operation=advance(view, "send", body=failed))


def load_targets(desk: Desk, body: InstanceMove) -> InstanceMove | str:
    """Return a move with the hosts of its decision, or why there are none."""
    if body.problem:
        return body.problem
    granted = load_decision(desk, body.request, decision_uuid=body.decision_uuid)
    if isinstance(granted, str):
        return granted
    (pick,) = granted.decision.picks
    return msgspec.structs.replace(body, needs=granted.needs, picks=granted.with_alternates(pick), attempt=1)


REFUSAL = Refusal(note_refusal, "choose", "send")
CHOOSE = State[InstanceMove](AT_ONCE, {Event.STARTED: To(choose, "send")})
