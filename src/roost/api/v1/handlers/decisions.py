"""Decisions: create, try, show, explain, replay, and move to the next alternate."""

import msgspec

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.current_names import StateNames, find_flavor
from roost.api.v1.handlers.check_index import check_index, index_of
from roost.api.v1.handlers.room_hint import find_room
from roost.api.v1.handlers.stored_names import find_image
from roost.api.v1.idempotency import check_same, mark_replay, uuid_of
from roost.api.v1.schemas.decisions import (
    DecisionBody,
    ExplanationBody,
    InstanceRequestBody,
    NextBody,
    NextStep,
    ReplayBody,
    WhyQuery,
    show_decision,
    show_pick,
    show_replay,
    show_why,
)
from roost.api.v1.wire.decode_body import field_problem
from roost.conductor.builds.alternates import location_of, next_alternate, pick_of
from roost.conductor.builds.remote_alternates import next_remote_alternate
from roost.conductor.intake import accept
from roost.errors import BadSettings, Conflict, NotFound
from roost.model.documents.request_document import FlavorEntry, ImageEntry, RequestDocument
from roost.model.evidence.decision import Decision
from roost.model.evidence.explain import Why
from roost.model.flavor import Flavor
from roost.model.fleet import NamedRequest
from roost.model.names import derive_uuid, uuid_bytes
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.placement.write_plan import Act, Plan, Result
from roost.scheduler.query import request_lookup

# Maximum number of instances in the note of a decision.
_INSTANCES_MAX = 10


def create(call: Call) -> Response | Act[Response]:
    """Choose hosts for all instances of a request and claim their resources.

    Returns the decision (201), granted or refused; in a dry run, the decision that would be made (200). Fails with 400
    for an invalid request, with 409 for an instance that this server runs, or a ``check_index`` whose choice changed.
    """
    body = call.body
    assert isinstance(body, DecisionBody)
    replay_response = None if call.key is None or body.dry_run else _find_replay(call, body)
    if replay_response is not None:
        return replay_response
    request = request_of(call, body)
    if request.move is None:
        _check_new(call, request)
    if body.dry_run:
        (decision,) = call.product.work([request], dry_run=True)
        assert decision is not None
        return json_response(show_decision(decision, dry_run=True, check_index=index_of(decision)))
    if body.check_index is not None:
        check_index(call, request, body.check_index)
    if request.move is not None:
        _check_claim(call, request.move.instance_uuid)
    if call.key is None:
        return Act(deed=request, answer=lambda result: _respond_created(call, result))
    return _decide_with_key(call, body, request)


def create_batch(_: Call) -> Response:
    """Decide up to 256 independent requests in their order, each as if it had come alone.

    Returns an answer for each request, with its status. An error of one request does not affect the others. All of
    them can share one commit. Dry runs are not possible. Fails with 400 if the body is not a valid batch.
    """
    raise AssertionError("the application enters each request of a batch on its own")


def show(call: Call) -> Response:
    """Show a stored decision.

    Fails with 404 for an unknown decision, or one of another project.
    """
    call.require_thread()
    return json_response(show_decision(visible_decision(call, call.name)))


def why(call: Call) -> Response:
    """Explain a stored decision from the state of its time.

    Returns the verdict of each rule, the nearest hosts and possible relaxations; with ``plans``, also the number of
    moves that make room on the present fleet, if the client may plan them. Fails with 404 for an unknown decision, or
    one of another project.
    """
    call.require_thread()
    query = call.query
    assert isinstance(query, WhyQuery)
    visible_decision(call, call.name)
    explained = call.product.why(call.name)
    return json_response(show_why(explained, plan=find_room(call, explained) if query.plans else None))


def explain(call: Call) -> Response:
    """Decide a request without a claim, and explain the decision on the present fleet.

    Returns the decision that would be made, the verdict of each rule, the nearest hosts and possible relaxations. Fails
    with 400 for an invalid request, with 409 for a ``check_index`` whose choice changed.
    """
    body = call.body
    assert isinstance(body, ExplanationBody)
    request = request_of(call, body)
    if body.check_index is not None:
        check_index(call, request, body.check_index)
    (decision,) = call.product.work([request], dry_run=True)
    assert decision is not None
    explained = Why(decision=decision, request=request, explanation=call.product.explain(request))
    return json_response(show_why(explained, dry_run=True, check_index=index_of(decision)))


def replay(call: Call) -> Response:
    """Decide a stored request again from the state of its time.

    Returns both decisions and their differences. Fails with 400 for invalid settings; with 404 for an unknown decision,
    one of another project, or one whose state is no longer stored.
    """
    body = call.body
    assert isinstance(body, ReplayBody)
    visible_decision(call, call.name)
    if body.settings is not None:
        try:
            settings: Settings | None = call.product.override_settings(body.settings)
        except BadSettings as error:
            raise field_problem("$.settings", str(error)) from None
    else:
        settings = call.product.settings if body.under == "current" else None
    return json_response(show_replay(call.product.replay(call.name, settings)))


def advance(call: Call) -> Response | Plan[Response]:
    """Release the resources of an instance and claim those of its next alternate, in one commit.

    Returns the new host. Fails with 400 if several instances match, with 404 for an unknown decision or instance. Fails
    with 409 if the decision was refused, its instance is on an unexpected host, this server runs the instance, or no
    alternate fits.
    """
    body = call.body
    assert isinstance(body, NextBody)
    decision = visible_decision(call, call.name)
    call.check_host(_source_host(call, decision, body))
    _check_claim(call, pick_of(decision, body.instance_uuid).instance_uuid)
    remote = call.product.remote
    if remote is not None:
        pick, left = next_remote_alternate(
            call.current, remote, decision, instance_uuid=body.instance_uuid, from_host=body.from_host
        )
        return json_response(NextStep(pick=show_pick(pick), left=left))
    call.note(instance=body.instance_uuid or "")
    step = next_alternate(call.current, decision, body.instance_uuid, from_host=body.from_host)
    answer = json_response(NextStep(pick=show_pick(step.pick), left=step.remaining))
    return Plan(answer=answer, writes=(step.release, step.claim))


def visible_decision(call: Call, uuid: str) -> Decision:
    """Return a stored decision.

    Raises:
        NotFound: it does not exist, or belongs to another project.
    """
    decision = call.product.decision(uuid)
    if not call.can_see_all and not call.can_see(call.product.request_of(decision).project_id):
        raise NotFound("decision", uuid)
    return decision


def _check_new(call: Call, request: Request) -> None:
    """Refuse a claim for instances that this server runs: only their operations may claim resources for them.

    Raises:
        Conflict: such an instance exists.
    """
    if request.instance_uuids:
        named = map(uuid_bytes, request.instance_uuids)
        accept.check_unused(call.agents.reader(call.current), [uuid for uuid in named if uuid is not None])


def _check_claim(call: Call, instance_uuid: str) -> None:
    """Refuse to move the claim of an instance that this server runs: the guest would stay, without its resources.

    Raises:
        Conflict: this server runs the instance.
    """
    uuid = uuid_bytes(instance_uuid)
    status = None if uuid is None else call.agents.reader(call.current).status(uuid)
    if status is not None and status.status != "DELETED":
        raise Conflict(f"the instance {instance_uuid} runs here: migrate it to move its resources")


def _source_host(call: Call, decision: Decision, body: NextBody) -> str:
    """Return the service that an instance is to leave: from the body, or else its current service."""
    if body.from_host is not None:
        return body.from_host
    return location_of(call.current.state, pick_of(decision, body.instance_uuid).instance_uuid)[0]


def request_of(call: Call, body: InstanceRequestBody, *, before: Request | None = None) -> Request:
    """Return the request in a body, with its names resolved.

    Args:
        before: the earlier request under the same key; names resolve to their values in it.

    Raises:
        Problem: 400, the request is invalid.
    """
    if before is not None:
        body = _resolve_as_before(call, body, before)
    document: RequestDocument = _with_client(call, body)
    if isinstance(body.flavor, str):
        flavor = find_flavor(body.flavor, call.product.flavors(), at="$.flavor")
        document = msgspec.structs.replace(document, flavor=_entry(flavor))
    if isinstance(body.image, str):
        document = msgspec.structs.replace(document, image=find_image(call, body.image, at="$.image"))
    try:
        names = StateNames(call.current.state, earlier_group=None if before is None else before.group)
        request = request_lookup.resolve_request(document, names)
    except ValueError as error:
        raise field_problem("$", str(error)) from None
    problems = call.product.rules.request_problems(request) if body.strict else ()
    if problems:
        raise field_problem("$", problems[0])
    return request


def _with_client(call: Call, body: InstanceRequestBody) -> InstanceRequestBody:
    """Return a body with user and project of the client where it has none; a moving instance keeps its project."""
    identity = call.identity
    project_id = body.project_id or ("" if body.move is not None else identity.project_id)
    return msgspec.structs.replace(body, project_id=project_id, user_id=body.user_id or identity.user_id)


def _resolve_as_before(call: Call, body: InstanceRequestBody, before: Request) -> InstanceRequestBody:
    """Replace names by their values in an earlier request.

    Any name of an image matches, since these names are not stored. Any name of a server group matches a deleted group.
    """
    if body.flavor == before.flavor.name:
        body = msgspec.structs.replace(body, flavor=_entry(before.flavor))
    if isinstance(body.image, str) and before.image is not None:
        body = msgspec.structs.replace(body, image=ImageEntry(**msgspec.structs.asdict(before.image)))
    if body.group is not None and before.group is not None:
        group = call.current.state.groups_by_uuid.get(before.group)
        is_name = uuid_bytes(body.group) is None
        if body.group == group.name if group is not None else is_name:
            body = msgspec.structs.replace(body, group=before.group)
    if body.move is not None and before.move is not None:  # Omitted fields were taken from the instance.
        project_id, group_uuid = body.project_id or before.project_id, body.group or before.group
        body = msgspec.structs.replace(body, project_id=project_id, group=group_uuid)
    return body


def _entry(flavor: Flavor) -> FlavorEntry:
    # Not decoded again: a stored flavor stays usable even if it exceeds newer limits.
    return FlavorEntry(**msgspec.structs.asdict(flavor))


def _respond_created(call: Call, result: Result) -> Response:
    if isinstance(result, Exception):
        raise result
    assert result is not None, "each request gets a decision"
    _note(call, result)
    url = call.request.location(f"/decisions/{result.uuid}")["location"]
    return json_response(show_decision(result), status=201, location=url)


def _note(call: Call, decision: Decision) -> None:
    """Describe a decision for the log."""
    call.note(
        "",
        decision.uuid,
        outcome=decision.outcome,
        hosts=", ".join(decision.hosts),
        instances=", ".join(pick.instance_uuid for pick in decision.picks[:_INSTANCES_MAX]),
        reason=decision.reason,
    )


def _decide_with_key(call: Call, body: DecisionBody, request: Request) -> Act[Response]:
    """Decide under an idempotency key; the uuids of the decision and its instances derive from the key.

    So any process finds the stored decision by its key, and no two processes claim for one key.
    """

    def answer(result: Result) -> Response:
        if isinstance(result, Exception):
            # Another process may have decided the same request concurrently.
            return _find_replay(call, body) or _respond_created(call, result)
        return _respond_created(call, result)

    uuid = uuid_of(call, "decision")
    return Act(deed=NamedRequest(request=_name_instances(request, uuid), decision_uuid=uuid), answer=answer)


def _name_instances(request: Request, uuid: str) -> Request:
    """Return a request with instance uuids.

    A request without them gets the uuid of the moved instance, or uuids derived from the decision's uuid.
    """
    if request.instance_uuids:
        return request
    if request.move is not None:
        return msgspec.structs.replace(request, instance_uuids=(request.move.instance_uuid,))
    uuids = tuple(derive_uuid("instance", uuid, str(number)) for number in range(request.count))
    return msgspec.structs.replace(request, instance_uuids=uuids)


def _find_replay(call: Call, body: DecisionBody) -> Response | None:
    """Return the response of an earlier decision under the key; None: there was no such decision.

    Raises:
        Problem: 422, the key belongs to another request.
    """
    try:
        decision = call.product.decision(uuid_of(call, "decision"))
    except NotFound:
        return None
    before = call.product.request_of(decision)
    request = _name_instances(request_of(call, body, before=before), decision.uuid)
    check_same(call, is_same=_is_answer(before, request, decision))
    return mark_replay(_respond_created(call, decision))


def _is_answer(before: Request, request: Request, decision: Decision) -> bool:
    """Return whether a decision answers a request; users are not compared, since older decisions do not have them."""
    uuids = request.instance_uuids if decision.is_granted else ()
    return before == msgspec.structs.replace(request, instance_uuids=uuids, user_id=before.user_id)
