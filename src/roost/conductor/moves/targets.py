"""Where a move may go: it is asked for a decision, and has its hosts from that; then its kind says what follows."""

from collections.abc import Callable, Mapping

import msgspec

from roost.conductor.moves.endings import hand_over
from roost.conductor.moves.move_decision import load_decision, retry_decision
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.step import CHOOSE, Choose, Commit, Desk, Step, View, advance, body_of
from roost.errors import RoostError
from roost.model.names import uuid_bytes
from roost.model.work.operation import Moving


def next_step(view: View, desk: Desk, steps: Mapping[str, Callable[[View, Desk, Moving], Commit]]) -> Step:
    """Return the next step of a move.

    Args:
        steps: those of its kind that come after the decision, by name.
    """
    body = body_of(view.operation, Moving)
    if view.operation.is_cancelled:
        return hand_over(view, desk, body)
    if view.operation.step == CHOOSE:
        return Choose(operation=advance(view, "send"), request=body.request, decision_uuid=body.decision_uuid)
    return steps[view.operation.step](view, desk, body)


def note_refusal(view: View, desk: Desk, error: RoostError) -> Commit:
    """Return the step that follows where the scheduler gave no decision; nothing was claimed."""
    body = body_of(view.operation, Moving)
    without = Commit(operation=advance(view, "send", body=msgspec.structs.replace(body, problem=describe_error(error))))
    return retry_decision(view, desk, error, consumers=[uuid_bytes(body.migration_uuid)]) or without


def load_targets(desk: Desk, body: Moving) -> Moving | str:
    """Return a move with the hosts of its decision, or why there are none."""
    if body.problem:
        return body.problem
    found = load_decision(desk, body.request, decision_uuid=body.decision_uuid)
    if isinstance(found, str):
        return found
    (pick,) = found.decision.picks
    return msgspec.structs.replace(body, needs=found.needs, picks=found.with_alternates(pick), attempt=1)
