"""The decision requested by an operation's last commit."""

from collections.abc import Iterable
from typing import NamedTuple

from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.step import Commit, Desk, View, wait_until
from roost.errors import BadRequest, Conflict, NotFound, NoValidHost, RoostError
from roost.model.evidence.decision import Decision, Pick
from roost.model.request import Request
from roost.model.work.guest_use import GuestNeeds
from roost.scheduler.numa.constraints import topology_of

# Seconds until a decision is repeated after too many lost races.
_PAUSE_S = 1.0


class GrantedDecision(NamedTuple):
    """A granted decision."""

    decision: Decision
    needs: GuestNeeds  # of each guest, besides amounts

    def with_alternates(self, pick: Pick) -> tuple[Pick, ...]:
        """Return a chosen host and its alternates."""
        return (pick, *self.decision.alternates.get(pick.cell, ()))


def load_decision(desk: Desk, request: Request, *, decision_uuid: str) -> GrantedDecision | str:
    """Return a granted decision, or why there is none.

    Args:
        request: of the decision.
    """
    try:
        decision = desk.decision(decision_uuid)
        needs = GuestNeeds(topology=topology_of(request), pci=desk.devices(request))
    except (NotFound, BadRequest) as error:
        return describe_error(error)
    return GrantedDecision(decision, needs) if decision.is_granted else str(NoValidHost(decision.reason))


def retry_decision(view: View, desk: Desk, error: RoostError, *, consumers: Iterable[bytes | None]) -> Commit | None:
    """Return the step that repeats a decision; None: a repetition would not help.

    Args:
        error: of the scheduler.
        consumers: of the decision; if one holds allocations, the decision was made after all.
    """
    if not isinstance(error, Conflict) or any(uuid in desk.current.state.holders for uuid in consumers):
        return None
    return Commit(operation=wait_until(view, view.now_s + _PAUSE_S))
