"""Build one instance on its host, or on one of the alternates of its decision."""

import msgspec

from roost.conductor.builds.alternates import location_of, plan_alternate
from roost.conductor.moves.endings import hand_over
from roost.conductor.moves.guests import guest_of_pick
from roost.conductor.operation.events import Event
from roost.conductor.operation.faults import describe_error
from roost.conductor.operation.retries import attempt_record, check_attempt, no_alternate_error
from roost.conductor.operation.row_changes import derive_uuid, next_version, replace_row
from roost.conductor.operation.step import (
    Commit,
    Desk,
    View,
    end,
    new_order,
    release_lock,
    simple_order,
    story_line,
    wait_until,
    withdraw_orders,
)
from roost.conductor.operation.step_table import State, Table, To
from roost.conductor.operation.watches import WHILE_ALIVE, WITHIN_LIMIT, target_problem
from roost.errors import BuildFailed, Conflict, MaxRetriesExceeded
from roost.model.evidence.decision import Pick
from roost.model.names import uuid_text
from roost.model.work.operation import InstanceBuild
from roost.model.work.orders import OrderBody
from roost.model.work.work_rows import OperationRow, OrderRow, Put, StatusRow
from roost.placement.writes.claims import plan_release

Builds = tuple[tuple[Pick, bool], ...]


def new_spawn(view: View, desk: Desk, status: StatusRow, *, body: InstanceBuild) -> tuple[OperationRow, OrderRow]:
    """Return the operation to build an instance on the first of its picks, and its first order."""
    now_s, limit_s = view.now_s, view.terms.build_timeout_s
    has_agent = view.agent(body.picks[0].host) is not None
    operation = OperationRow(
        id=desk.current.new_id("operation"),
        kind="spawn",
        instance_uuid=status.uuid,
        uuid=derive_uuid("spawn", view.operation.uuid, status.uuid),
        turn=status.version + 1,
        parent_id=view.operation.id,
        cell=body.picks[0].cell,
        step="spawn",
        due_at_s=now_s + limit_s if has_agent else now_s,
        created_at_s=now_s,
        changed_at_s=now_s,
        body=msgspec.msgpack.encode(msgspec.structs.replace(body, limit_at_s=now_s + limit_s)),
    )
    body_of_order = _order(operation, body, status.uuid, limit_s=limit_s)
    order = new_order(view, desk, body.picks[0].host, action="spawn", body=body_of_order, operation=operation)
    return operation, order


def finish(view: View, desk: Desk, body: InstanceBuild) -> Commit:
    """Set ACTIVE. If the instance now has its allocations elsewhere, order the host to destroy the guest."""
    pick, name = body.picks[0], uuid_text(view.status.uuid)
    try:
        location = location_of(desk.current.state, name)
    except Conflict as error:
        return _clear(view, desk, body, lost=describe_error(error), is_final=True)
    if location != (pick.host, pick.node):
        lost = f"the claim of instance {name} moved to {location[1]} during the build on {pick.node}"
        return _clear(view, desk, body, lost=lost, is_final=True)
    after = msgspec.structs.replace(body, attempts=(*body.attempts, attempt_record(pick)))
    lock = release_lock(view, status="ACTIVE", fault="", **_first_image(body))
    return Commit(
        operation=end(view, body=after),
        work=(*lock, story_line(view, desk, "spawn.built", host=pick.host)),
        builds=((pick, False),),
    )


def try_next(view: View, desk: Desk, body: InstanceBuild) -> Commit:
    """Claim the next alternate and order the build there, in one commit; with none left, set ERROR."""
    is_gone = view.reply.event is Event.HOST_GONE
    problem = target_problem(view, body.picks[0].host) if is_gone else view.reply.problem
    return _try_next(view, desk, body, problem=problem, is_final=False)


def give_up(view: View, desk: Desk, body: InstanceBuild) -> Commit:
    """Release all allocations and set ERROR: the build would fail on any other host too."""
    return _try_next(view, desk, body, problem=view.reply.problem, is_final=True)


def clear(view: View, desk: Desk, body: InstanceBuild) -> Commit:
    """Withdraw the order, and order the host to destroy the guest, if it was built."""
    return _clear(view, desk, body, lost=f"it was not built within {view.terms.build_timeout_s:,.0f} s")


def resume(view: View, desk: Desk, body: InstanceBuild) -> Commit:
    """Continue as after a failed build."""
    return _try_next(view, desk, body, problem=body.lost, is_final=body.is_final)


def keep_claim(view: View, desk: Desk, body: InstanceBuild) -> Commit:
    """Set ERROR and keep the allocations: the guest may still be on the host."""
    answer = view.reply.answer
    problem = "" if answer is None else answer.problem or answer.outcome
    fault = f"{body.lost}; and {view.status.host} could not destroy it: {problem}"
    lock = release_lock(view, status="ERROR", fault=fault, **_first_image(body))
    return Commit(
        operation=end(view, body=body, problem=fault),
        work=(*lock, story_line(view, desk, "spawn.failed", fault=fault)),
        builds=() if body.is_final else ((body.picks[0], True),),
    )


def _try_next(view: View, desk: Desk, body: InstanceBuild, *, problem: str, is_final: bool) -> Commit:
    """Return the step after a failed attempt.

    Args:
        is_final: whether no other host can succeed.
    """
    pick, name = body.picks[0], uuid_text(view.status.uuid)
    had_agent = view.agent(pick.host) is not None
    after = msgspec.structs.replace(
        body,
        attempts=(*body.attempts, attempt_record(pick, problem=problem)),
        attempt=body.attempt + had_agent,
        lost="",
        picks=body.picks[1:],
    )
    # A guest that was built and then destroyed is not a failed build. Without an agent, there was no build.
    builds = ((pick, True),) if had_agent and not (body.lost and is_final) else ()
    if is_final:
        return _end_in_error(view, desk, after, fault=problem, builds=builds)
    try:
        check_attempt(
            body.request,
            instance_uuid=name,
            attempt=after.attempt,
            attempts_max=view.terms.attempts_max,
            error=BuildFailed(problem),
            attempts=after.attempts,
        )
        return _order_alternate(view, desk, after, builds=builds)
    except (BuildFailed, MaxRetriesExceeded, Conflict) as error:
        return _end_in_error(view, desk, after, fault=describe_error(error), builds=builds)


def _order_alternate(view: View, desk: Desk, body: InstanceBuild, *, builds: Builds) -> Commit:
    """Return the step to the first claimable alternate, or to the end.

    Raises:
        Conflict: the instance does not exist any more.
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
        order = _order(view.operation, after, view.status.uuid, limit_s=limit_s)
        status = next_version(view.status, cell=pick.cell, host=pick.host, node=pick.node, changed_at_s=view.now_s)
        return Commit(
            operation=wait_until(view, after.limit_at_s, step="spawn", body=after),
            writes=(step.release, step.claim),
            work=(
                *withdraw_orders(view.orders),
                replace_row(status),
                Put(new_order(view, desk, pick.host, action="spawn", body=order)),
                story_line(
                    view, desk, "spawn.failed", host=view.status.host, problem=_last_problem(body), next=pick.host
                ),
            ),
            builds=builds,
        )
    after = msgspec.structs.replace(body, attempts=tuple(attempts), picks=())
    # If no build was attempted, the fault is the last problem, not the lack of alternates.
    fault = describe_error(no_alternate_error(name, attempts)) if builds else _last_problem(body)
    return _end_in_error(view, desk, after, fault=fault, builds=builds)


def _clear(view: View, desk: Desk, body: InstanceBuild, *, lost: str, is_final: bool = False) -> Commit:
    limit_s = view.terms.act_timeout_s
    after = msgspec.structs.replace(body, lost=lost, is_final=is_final)
    destroy = new_order(view, desk, body.picks[0].host, action="destroy", body=simple_order(view, limit_s=limit_s))
    return Commit(
        operation=wait_until(view, view.now_s + limit_s, step="clearing", body=after),
        work=(*withdraw_orders(view.orders), Put(destroy)),
    )


def _end_in_error(view: View, desk: Desk, body: InstanceBuild, *, fault: str, builds: Builds) -> Commit:
    """Set ERROR and release all allocations; after a failed unshelve, the instance is shelved again."""
    status = {"status": "SHELVED_OFFLOADED"} if body.is_unshelved else {"status": "ERROR", "cell": ""}
    lock = release_lock(view, **status, fault=fault, host="", node="")
    event = story_line(view, desk, "spawn.failed", host=view.status.host, problem=_last_problem(body), fault=fault)
    return Commit(
        operation=end(view, body=body, problem=fault),
        writes=plan_release(desk.current.state, [view.status.uuid]),
        work=(*withdraw_orders(view.orders), *lock, event),
        builds=builds,
    )


def _first_image(body: InstanceBuild) -> dict[str, int]:
    """Return the change to the status of an unshelved instance: its original image again."""
    return {"image_id": body.image_id} if body.is_unshelved else {}


def _order(operation: OperationRow, body: InstanceBuild, uuid: bytes, *, limit_s: float) -> OrderBody:
    """Return the order to build the guest on the first of the picks."""
    return OrderBody(operation=uuid_text(operation.uuid), limit_s=limit_s, guest=guest_of_pick(body, uuid))


def _last_problem(body: InstanceBuild) -> str:
    """Return why the last attempt with a claim failed."""
    return next((each.problem for each in reversed(body.attempts) if each.claim == "claimed"), "")


TABLE = Table(
    InstanceBuild,
    {
        "spawn": State(
            WITHIN_LIMIT,
            {
                Event.DONE: To(finish, "end", "clearing"),
                Event.FAILED | Event.HOST_GONE: To(try_next, "spawn", "end"),
                Event.ABORTED: To(give_up, "end"),
                Event.TIMED_OUT: To(clear, "clearing"),
            },
        ),
        "clearing": State(
            WHILE_ALIVE,
            {
                Event.DONE | Event.HOST_GONE: To(resume, "spawn", "end"),
                Event.FAILED | Event.ABORTED: To(keep_claim, "end"),
            },
        ),
    },
    first=("spawn",),
    cancel=To(hand_over, "end"),
)
