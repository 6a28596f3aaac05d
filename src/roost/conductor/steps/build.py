"""A request for instances: hosts are chosen for all of them or none, then each is sent to its host.

.. code-block:: text

    choose ─▶ send      with the decision, whatever it says: both are one commit
    send   ─▶ send      a piece of the instances each: an operation of its own with its first order, or ERROR
           ─▶ end
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from roost.conductor.faults import told as words_of
from roost.conductor.retries import check_attempt, first_attempt
from roost.conductor.rows import instead, later
from roost.conductor.step import (
    Choose,
    Commit,
    Desk,
    Step,
    View,
    body_of,
    ended,
    going_on,
    told,
    waiting,
)
from roost.conductor.steps.spawn import begun
from roost.errors import BadRequest, Conflict, MaxRetriesExceeded, NotFound, NoValidHost, RoostError
from roost.model.decision import Pick
from roost.model.guest_use import GuestNeeds
from roost.model.journal import Write
from roost.model.names import uuid_bytes, uuid_text
from roost.model.operation import Build, Spawn
from roost.model.request import Request
from roost.model.work import OperationRow, Put, StatusRow
from roost.placement.claims import release_of
from roost.scheduler.numa.constraints import topology_of

# So many instances are sent in one commit.
PIECE = 100
# A decision that lost too many races is made anew after so many seconds.
_PAUSE_S = 1.0


class _Chosen(NamedTuple):
    """What came of the decision."""

    problem: str = ""  # why there is no host for any instance
    picks: Mapping[str, Pick] = {}  # by instance
    alternates: Mapping[str, list[Pick]] = {}  # by cell
    needs: GuestNeeds = GuestNeeds()  # of each instance


def next_step(view: View, desk: Desk) -> Step:
    """Return the next step."""
    body = body_of(view.operation, Build)
    if view.operation.step == "choose":
        return Choose(
            operation=going_on(view, "send"), request=body.request, decision_uuid=body.decision_uuid
        )  # fmt: skip
    return _send(view, desk, body)


def subjects(operation: OperationRow) -> tuple[bytes, ...]:
    """Return the instances that are sent next."""
    if operation.step == "choose":
        return ()
    body = body_of(operation, Build)
    piece = body.request.instance_uuids[body.sent : body.sent + PIECE]
    return tuple(filter(None, map(uuid_bytes, piece)))


def refused(view: View, desk: Desk, error: RoostError) -> Commit:
    """Return the step that follows where the scheduler gave no decision; nothing was claimed."""
    body = body_of(view.operation, Build)
    holders = desk.current.state.holders
    is_there = any(uuid_bytes(uuid) in holders for uuid in body.request.instance_uuids)
    if isinstance(error, Conflict) and not is_there:
        return Commit(operation=waiting(view, view.now_s + _PAUSE_S))
    return Commit(operation=going_on(view, "send", body=msgspec.structs.replace(body, problem=words_of(error))))


def _send(view: View, desk: Desk, body: Build) -> Commit:
    chosen = _chosen(desk, body)
    ids: list[bytes] = []  # of instances whose claims are given back
    work: list[Put] = []
    piece = subjects(view.operation)
    for uuid in piece:
        status, pick = view.statuses[uuid], chosen.picks.get(uuid_text(uuid))
        fault = chosen.problem or _fault(view, body.request, pick, uuid=uuid_text(uuid))
        if fault or pick is None:
            ids += [] if body.problem else [uuid]  # Without a decision it is not this request that claimed.
            work += _buried(view, desk, status, decision_uuid=body.decision_uuid, fault=fault)
        else:
            work += _sent(view, desk, status, body=body, chosen=chosen, pick=pick)
    after = msgspec.structs.replace(body, sent=body.sent + len(piece))
    is_last = after.sent >= body.request.count
    operation = ended(view, body=after, problem=chosen.problem) if is_last else going_on(view, "send", body=after)
    return Commit(operation=operation, writes=_given_back(desk, ids), work=tuple(work))


def _chosen(desk: Desk, body: Build) -> _Chosen:
    if body.problem:
        return _Chosen(problem=body.problem)
    try:
        decision = desk.decision(body.decision_uuid)
        needs = GuestNeeds(topology=topology_of(body.request), pci=desk.devices(body.request))
    except (NotFound, BadRequest) as error:
        return _Chosen(problem=words_of(error))
    if not decision.is_granted:
        return _Chosen(problem=str(NoValidHost(decision.reason)))
    picks = {pick.instance_uuid: pick for pick in decision.picks}
    return _Chosen(picks=picks, alternates=decision.alternates, needs=needs)


def _fault(view: View, request: Request, pick: Pick | None, *, uuid: str) -> str:
    """Say why an instance is not sent to the host that was chosen for it; empty: it is."""
    if pick is None:
        return "its decision has no host for it"
    if view.agent(pick.host) is None:
        return f"no agent runs on {pick.host}"
    try:
        check_attempt(
            request, instance_uuid=uuid, attempt=first_attempt(request), attempts_max=view.terms.attempts_max,
            error=None,
        )  # fmt: skip
    except MaxRetriesExceeded as error:
        return words_of(error)
    return ""


def _sent(
    view: View, desk: Desk, status: StatusRow, *, body: Build, chosen: _Chosen, pick: Pick
) -> list[Put]:  # fmt: skip
    """Return the operation that builds one instance, with its first order."""
    request = msgspec.structs.replace(body.request, instance_uuids=(), count=1)
    spawn = Spawn(
        request=request, name=status.name, needs=chosen.needs, attempt=first_attempt(request),
        picks=(pick, *chosen.alternates.get(pick.cell, ())),
    )  # fmt: skip
    operation, order = begun(view, desk, status, body=spawn)
    held = later(
        status, task="spawning", operation_id=operation.id, cell=pick.cell, host=pick.host, node=pick.node,
        decision_uuid=uuid_bytes(body.decision_uuid), changed_at_s=view.now_s,
    )  # fmt: skip
    return [
        instead(held),
        Put(operation),
        Put(order),
        told(view, desk, "build.sent", instance_uuid=status.uuid, host=pick.host),
    ]


def _buried(view: View, desk: Desk, status: StatusRow, *, decision_uuid: str, fault: str) -> list[Put]:
    row = later(
        status, status="ERROR", task="", operation_id=0, fault=fault, decision_uuid=uuid_bytes(decision_uuid),
        changed_at_s=view.now_s,
    )  # fmt: skip
    return [instead(row), told(view, desk, "build.failed", instance_uuid=status.uuid, problem=fault)]


def _given_back(desk: Desk, uuids: list[bytes]) -> tuple[Write, ...]:
    state = desk.current.state
    holders = [state.holders[uuid] for uuid in uuids if uuid in state.holders]
    return (release_of(state, holders),) if holders else ()
