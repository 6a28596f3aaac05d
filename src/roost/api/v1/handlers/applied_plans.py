"""Apply or rehearse the moves of a plan."""

from roost.api.http import Response
from roost.api.v1.accepted_response import respond_accepted
from roost.api.v1.call import Call, json_response
from roost.api.v1.idempotency import check_same, operation_uuid
from roost.api.v1.schemas.plans import ApplyBody, MoveBody, RehearsedMove, RehearsedPlan
from roost.conductor.intake import accept_plan
from roost.conductor.operation.step import body_of
from roost.errors import Conflict, NoValidHost
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure
from roost.model.names import uuid_text
from roost.model.work.change_memory import AppliedMove, MoveState, PlanApplication
from roost.model.work.work_rows import OperationRow
from roost.placement.write_plan import Plan


def apply(call: Call) -> Response | Plan[Response]:
    """Apply the moves of a plan, or rehearse them.

    Returns the operation (202); in a dry run, the rehearsed moves (200). Every move is decided again when it begins. If
    it does not fit then, it fails, and the moves that need it are skipped. Without the policy
    ``roost:all_projects``, moves of instances of other projects fail. Fails with 400 for moves that do not form a
    plan, or invalid windows; with 403 for a host outside the token's bounds; with 409 on a server with a remote
    Placement.
    """
    body = call.body
    assert isinstance(body, ApplyBody)
    if call.product.remote is not None:
        raise Conflict("this server uses a remote Placement: plans are not supported", problem_type="not-supported")
    moves = tuple(map(_move, body.moves))
    accept_plan.check_moves(moves)
    accept_plan.check_windows(body.windows)
    for host in {name for move in moves for name in (move.source, move.target) if name}:
        call.check_host(host)
    reader = call.agents.reader(call.current)
    statuses = accept_plan.find_statuses(
        reader, moves, may_move=lambda status: call.can_see_all or call.can_see(status.project_id)
    )
    if body.dry_run:
        return json_response(_rehearse(call, moves, statuses))
    uuid = operation_uuid(call)
    call.note(moves=f"{len(moves)}", at_once=f"{body.at_once}")
    previous = reader.operation_by_uuid(uuid)
    if previous is not None:
        check_same(call, is_same=_is_same(previous, body, moves))
        return respond_accepted(call, previous, uuid_text(uuid))
    now_s = reader.now_s()
    application = PlanApplication(
        moves=moves,
        at_once=body.at_once,
        per_host=body.per_host,
        per_group=body.per_group,
        deadline_at_s=0.0 if body.deadline_s is None else now_s + body.deadline_s,
        windows=tuple(body.windows),
    )
    plan = accept_plan.apply(
        call.current,
        application,
        statuses,
        documents=call.current.store.document,
        operation_uuid=uuid,
        now_s=now_s,
    )
    return respond_accepted(call, plan, uuid_text(uuid))


def _move(body: MoveBody) -> AppliedMove:
    return AppliedMove(
        number=body.number,
        instance=body.instance_uuid,
        source=body.source,
        target=body.target,
        after=tuple(body.after),
    )


def _is_same(previous: OperationRow, body: ApplyBody, moves: tuple[AppliedMove, ...]) -> bool:
    """Return whether an operation applies the requested moves; the deadline is not compared, since it is a time."""
    if previous.kind != "apply":
        return False
    stored = body_of(previous, PlanApplication)
    limits = (stored.at_once, stored.per_host, stored.per_group, list(stored.windows))
    return limits == (body.at_once, body.per_host, body.per_group, body.windows) and list(
        map(_key, stored.moves)
    ) == list(map(_key, moves))


def _key(move: AppliedMove) -> tuple[object, ...]:
    return (move.number, move.instance, move.source, move.target, move.after)


def _rehearse(call: Call, moves: tuple[AppliedMove, ...], statuses: accept_plan.Statuses) -> RehearsedPlan:
    """Rehearse moves one after the other on a copy of the fleet."""
    acts = accept_plan.rehearse(call.current.store.document, moves, statuses)
    results = iter(list(call.product.outcomes([act for own in acts for act in own], dry_run=True)))
    found: dict[int, MoveState] = {}
    rehearsed = []
    for move, own in zip(moves, acts, strict=True):
        outcomes = [(act, next(results)) for act in own]
        decided = next((result for act, result in outcomes if not isinstance(act, Departure)), None)
        status = accept_plan.find_status(statuses, move)
        is_made = status is not None and accept_plan.is_made(move, status)
        problem = "" if is_made else accept_plan.refusal_of(move, status) or _problem_of(decided)
        state: MoveState = "failed" if problem else "done"
        missing = next((number for number in move.after if found[number] != "done"), None)
        if missing is not None:
            state, problem = "skipped", f"it needs move {missing}, which would not be made"
        found[move.number] = state
        rehearsed.append(
            RehearsedMove(
                number=move.number,
                instance_uuid=move.instance,
                instance="" if status is None else status.name,
                source=move.source,
                target=move.target,
                state=state,
                problem=problem,
            )
        )
    return RehearsedPlan(moves=rehearsed)


def _problem_of(result: object) -> str:
    """Return why the scheduler refuses a move; empty: it does not."""
    if result is None or (isinstance(result, Decision) and result.is_granted):
        return ""
    return str(NoValidHost(result.reason) if isinstance(result, Decision) else result)
