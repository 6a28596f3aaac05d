"""One instance is built on its host, or on one of the alternates.

.. code-block:: text

    spawn    ─▶ end        it runs: ACTIVE
             ─▶ spawn      the host could not, or has no agent: the next alternate is claimed in the commit that
                           orders it there
             ─▶ clearing   the host took too long, and is alive: first it has to get rid of what there may be of it
             ─▶ end        no host could, or none may be tried: ERROR, and nothing is claimed; an instance that was
                           shelved is so again
    clearing ─▶ spawn, end as above, when the host answered, or was given up
"""

import msgspec

from roost.conductor.builds.alternates import location_of, plan_alternate
from roost.conductor.moves.endings import hand_over
from roost.conductor.moves.guests import guest_of_pick
from roost.conductor.moves.wait_for_host import awaited, problem_of, target_problem
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.retries import attempt_record, check_attempt, no_alternate_error
from roost.conductor.operation.row_changes import derive_uuid, next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    answer_of,
    body_of,
    end,
    is_open,
    new_order,
    release_lock,
    simple_order,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.errors import BuildFailed, Conflict, MaxRetriesExceeded
from roost.model.evidence.decision import Pick
from roost.model.names import uuid_text
from roost.model.work.operation import Spawning
from roost.model.work.orders import Answer, OrderBody
from roost.model.work.work_rows import OperationRow, OrderRow, Put, StatusRow
from roost.placement.writes.claims import given_back

Builds = tuple[tuple[Pick, bool], ...]


def new_spawn(view: View, desk: Desk, status: StatusRow, *, body: Spawning) -> tuple[OperationRow, OrderRow]:
    """Return the operation that builds an instance on the first of its picks, and its first order."""
    now_s, limit_s = view.now_s, view.terms.build_timeout_s
    is_awaited = view.agent(body.picks[0].host) is not None
    operation = OperationRow(
        id=desk.current.new_id("operation"),
        kind="spawn",
        instance_uuid=status.uuid,
        uuid=derive_uuid("spawn", view.operation.uuid, status.uuid),
        turn=status.version + 1,
        parent_id=view.operation.id,
        cell=body.picks[0].cell,
        step="spawn",
        due_at_s=now_s + limit_s if is_awaited else now_s,
        created_at_s=now_s,
        changed_at_s=now_s,
        body=msgspec.msgpack.encode(msgspec.structs.replace(body, limit_at_s=now_s + limit_s)),
    )
    wanted = _wanted(operation, body, status.uuid, limit_s=limit_s)
    order = new_order(view, desk, body.picks[0].host, action="spawn", body=wanted, operation=operation)
    return operation, order


def next_step(view: View, desk: Desk) -> Commit:
    """Return the next step."""
    body = body_of(view.operation, Spawning)
    if view.operation.is_cancelled:
        return hand_over(view, desk, body)
    order = view.orders[-1]
    if view.operation.step == "clearing":
        waits = awaited(view)
        if waits is not None:
            return waits
        answer = Answer(outcome="ok") if is_open(order) else answer_of(order)
        if answer.outcome != "ok":
            return _stuck(view, desk, body, problem=answer.problem or answer.outcome)
        return _lost(view, desk, body, problem=body.lost, is_final=body.is_final)
    if not is_open(order):
        return _answered(view, desk, body, order=order)
    if view.is_away(order.host):
        return _lost(view, desk, body, problem=target_problem(view, body.picks[0].host), is_final=False)
    if view.now_s < body.limit_at_s:
        return Commit(operation=wait_until(view, body.limit_at_s))
    return _clearing(view, desk, body, lost=f"it was not built within {view.terms.build_timeout_s:,.0f} s")


def _answered(view: View, desk: Desk, body: Spawning, *, order: OrderRow) -> Commit:
    answer = answer_of(order)
    if answer.outcome != "ok":
        problem = problem_of(answer, host=body.picks[0].host)
        return _lost(view, desk, body, problem=problem, is_final=answer.outcome == "aborted")
    pick, name = body.picks[0], uuid_text(view.status.uuid)
    try:
        here = location_of(desk.current.state, name)
    except Conflict as error:
        return _clearing(view, desk, body, lost=describe_error(error), is_final=True)
    if here != (pick.host, pick.node):
        lost = f"the instance {name} went to {here[1]} while it was built on {pick.node}"
        return _clearing(view, desk, body, lost=lost, is_final=True)
    after = msgspec.structs.replace(body, attempts=(*body.attempts, attempt_record(pick)))
    return Commit(
        operation=end(view, body=after),
        work=(
            *release_lock(view, status="ACTIVE", fault="", **_image(body)),
            story_line(view, desk, "spawn.built", host=pick.host),
        ),
        builds=((pick, False),),
    )


def _lost(view: View, desk: Desk, body: Spawning, *, problem: str, is_final: bool) -> Commit:
    """Return what follows an attempt that failed.

    Args:
        is_final: whether no other host would do.
    """
    pick, name = body.picks[0], uuid_text(view.status.uuid)
    is_attempt = view.agent(pick.host) is not None
    after = msgspec.structs.replace(
        body,
        attempts=(*body.attempts, attempt_record(pick, problem=problem)),
        attempt=body.attempt + is_attempt,
        lost="",
        picks=body.picks[1:],
    )
    # What was built and then taken away did not fail, nor did what nobody was there to build.
    builds = ((pick, True),) if is_attempt and not (body.lost and is_final) else ()
    if is_final:
        return _buried(view, desk, after, fault=problem, builds=builds)
    try:
        check_attempt(
            body.request,
            instance_uuid=name,
            attempt=after.attempt,
            attempts_max=view.terms.attempts_max,
            error=BuildFailed(problem),
        )
        return _elsewhere(view, desk, after, builds=builds)
    except (BuildFailed, MaxRetriesExceeded, Conflict) as error:
        return _buried(view, desk, after, fault=describe_error(error), builds=builds)


def _elsewhere(view: View, desk: Desk, body: Spawning, *, builds: Builds) -> Commit:
    """Return the step to the next alternate that can be claimed, or to the end where none can.

    Raises:
        Conflict: the instance is not there any more.
    """
    name, attempts = uuid_text(view.status.uuid), list(body.attempts)
    for at, pick in enumerate(body.picks):
        step = target_problem(view, pick.host) or plan_alternate(desk.current, name, pick)
        if isinstance(step, str):
            attempts.append(attempt_record(pick, problem=step, is_claimed=False))
            continue
        limit_s = view.terms.build_timeout_s
        after = msgspec.structs.replace(
            body, attempts=tuple(attempts), picks=body.picks[at:], limit_at_s=view.now_s + limit_s
        )
        wanted = _wanted(view.operation, after, view.status.uuid, limit_s=limit_s)
        return Commit(
            operation=wait_until(view, after.limit_at_s, step="spawn", body=after),
            writes=(step.release, step.claim),
            work=(
                *withdraw_orders(view.orders),
                replace_row(
                    next_version(view.status, cell=pick.cell, host=pick.host, node=pick.node, changed_at_s=view.now_s)
                ),
                Put(new_order(view, desk, pick.host, action="spawn", body=wanted)),
                story_line(view, desk, "spawn.failed", host=view.status.host, problem=_last(body), next=pick.host),
            ),
            builds=builds,
        )
    after = msgspec.structs.replace(body, attempts=tuple(attempts), picks=())
    fault = (
        describe_error(no_alternate_error(name)) if builds else _last(body)
    )  # Without a build nothing was tried again.
    return _buried(view, desk, after, fault=fault, builds=builds)


def _clearing(view: View, desk: Desk, body: Spawning, *, lost: str, is_final: bool = False) -> Commit:
    """Return the step that lets an agent that is alive get rid of what there may be of the instance."""
    limit_s = view.terms.act_timeout_s
    after = msgspec.structs.replace(body, lost=lost, is_final=is_final)
    destroy = new_order(view, desk, body.picks[0].host, action="destroy", body=simple_order(view, limit_s=limit_s))
    return Commit(
        operation=wait_until(view, view.now_s + limit_s, step="clearing", body=after),
        work=(*withdraw_orders(view.orders), Put(destroy)),
    )


def _buried(view: View, desk: Desk, body: Spawning, *, fault: str, builds: Builds) -> Commit:
    again = {"status": "SHELVED_OFFLOADED"} if body.is_unshelved else {"status": "ERROR", "cell": ""}
    gone = release_lock(view, **again, fault=fault, host="", node="")
    return Commit(
        operation=end(view, body=body, problem=fault),
        writes=given_back(desk.current.state, [view.status.uuid]),
        work=(
            *withdraw_orders(view.orders),
            *gone,
            story_line(view, desk, "spawn.failed", host=view.status.host, problem=_last(body), fault=fault),
        ),
        builds=builds,
    )


def _stuck(view: View, desk: Desk, body: Spawning, *, problem: str) -> Commit:
    """Return the end of an instance that its host cannot get rid of: what it holds there stays held."""
    fault = f"{body.lost}; and {view.status.host} could not get rid of it: {problem}"
    return Commit(
        operation=end(view, body=body, problem=fault),
        work=(
            *release_lock(view, status="ERROR", fault=fault, **_image(body)),
            story_line(view, desk, "spawn.failed", fault=fault),
        ),
        builds=() if body.is_final else ((body.picks[0], True),),
    )


def _image(body: Spawning) -> dict[str, int]:
    """Return what changes of an instance that was shelved, when it is on a host again: what it was built from."""
    return {"image_id": body.image_id} if body.is_unshelved else {}


def _wanted(operation: OperationRow, body: Spawning, uuid: bytes, *, limit_s: float) -> OrderBody:
    """Return what the agent of the first of the picks is told to build."""
    return OrderBody(operation=uuid_text(operation.uuid), limit_s=limit_s, guest=guest_of_pick(body, uuid))


def _last(body: Spawning) -> str:
    """Return what went wrong in the last attempt that was made."""
    return next((each.problem for each in reversed(body.attempts) if each.claim == "claimed"), "")
