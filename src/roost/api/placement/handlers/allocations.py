"""``/allocations``: the allocations of consumers."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec

from roost.api.answer_options import Options
from roost.api.http import Request, Response, make_response
from roost.api.placement.allocation_schemas import schema_of_many, schema_of_one
from roost.api.problems import Problem
from roost.errors import BadRequest, NotFound
from roost.model.names import is_text, uuid_bytes, uuid_text
from roost.model.placement import microversions
from roost.model.writes import CLASS_BITS, CLASS_MASK
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.placement.writes import claims, providers
from roost.placement.writes.claims import ConsumerSpec

# Maximum number of providers in the note of a change.
_PROVIDERS_MAX = 10


def show(request: Request, current: Current) -> Response:
    """Show the allocations of a consumer."""
    state = current.state
    holder = claims.holder_of(state, request.parameters["consumer"])
    if holder is None:
        return make_response(request, {"allocations": {}}, changed_s=state.now_s)
    allocations: dict[str, Any] = {}
    rows = state.providers.row_of_id
    for inventory_id, amount in holder.takes:
        row = rows[inventory_id >> CLASS_BITS]
        of_provider = allocations.get(state.providers.uuids[row])
        if of_provider is None:
            of_provider = {"resources": {}, "generation": state.providers.generation.each[row]}
            allocations[state.providers.uuids[row]] = of_provider
        of_provider["resources"][state.class_ids.name_of(inventory_id & CLASS_MASK)] = amount
    value: dict[str, Any] = {"allocations": allocations}
    if request.supports(microversions.ALLOCATIONS_BY_PROVIDER):
        # An unknown owner is shown as the default, so that a client can write this response back.
        value["project_id"] = holder.project_id or request.options.incomplete_consumer_project_id
        value["user_id"] = holder.user_id or request.options.incomplete_consumer_user_id
    if request.supports(microversions.CONSUMER_GENERATIONS):
        value["consumer_generation"] = holder.generation
    if request.supports(microversions.CONSUMER_TYPES):
        value["consumer_type"] = claims.type_name(state, holder)
    return make_response(request, value, changed_s=holder.touched_s)


def list_of_provider(request: Request, current: Current) -> Response:
    """Show the allocations on a provider, by consumer."""
    state, uuid = current.state, request.parameters["uuid"]
    try:
        row = providers.row_of(state, uuid)
    except NotFound as error:
        raise Problem(404, f"Resource provider '{uuid}' not found: {error}") from None
    provider_id, name_of = state.providers.ids[row], state.class_ids.name_of
    allocations: dict[str, Any] = {}
    changed_s = 0.0
    for holder in request.while_active(state.consumers().find_by_provider(provider_id)):
        of_consumer: dict[str, Any] = {
            "resources": {
                name_of(inventory_id & CLASS_MASK): amount
                for inventory_id, amount in holder.takes
                if inventory_id >> CLASS_BITS == provider_id
            }
        }
        if request.supports(microversions.CONSUMER_GENERATIONS):
            of_consumer["consumer_generation"] = holder.generation
        allocations[uuid_text(holder.uuid)] = of_consumer
        changed_s = max(changed_s, holder.touched_s)
    value = {"allocations": allocations, "resource_provider_generation": state.providers.generation.each[row]}
    return make_response(request, value, changed_s=changed_s or state.now_s)


def replace(request: Request, current: Current) -> Response | Plan[Response]:
    """Replace the allocations of a consumer."""
    spec = spec_of(request)
    return _plan(
        request, current, [spec], unknown_class=f"Unable to allocate inventory for consumer {uuid_text(spec.uuid)}: "
    )


def replace_many(request: Request, current: Current) -> Response | Plan[Response]:
    """Replace the allocations of several consumers, all or none."""
    return _plan(request, current, specs_of_many(request), unknown_class="Unable to allocate inventory ")


def delete(request: Request, current: Current) -> Plan[Response]:
    """Delete the allocations of a consumer."""
    try:
        freed = claims.plan_end(current.state, request.parameters["consumer"])
    except NotFound as error:
        raise Problem(404, str(error)) from None
    return Plan(writes=(freed,), answer=make_response(request, status=204))


def spec_of(request: Request) -> ConsumerSpec:
    """Return the requested allocations of one consumer.

    Raises:
        BadRequest: the body is invalid.
    """
    uuid = request.parameters["consumer"]
    body = uuid_bytes(uuid)
    if body is None:
        raise _uuid_problem(uuid)
    return _spec(body, request.json(schema_of_one(request.version)), request.options)


def specs_of_many(request: Request) -> list[ConsumerSpec]:
    """Return the requested allocations of the consumers in a body.

    Raises:
        BadRequest: the body is invalid.
    """
    return specs_of(request.json(schema_of_many(request.version)), request.options)


def specs_of(consumers: Mapping[str, Any], options: Options) -> list[ConsumerSpec]:
    """Return the requested allocations of several consumers.

    Raises:
        BadRequest: a uuid is invalid, or repeated.
    """
    specs: dict[bytes, ConsumerSpec] = {}
    for uuid, described in consumers.items():
        body = uuid_bytes(uuid)
        if body is None:
            raise _uuid_problem(uuid)
        if body in specs:
            raise BadRequest(f"The consumer {uuid_text(body)} is named twice.")
        specs[body] = _spec(body, described, options)
    return list(specs.values())


def _plan(
    request: Request, current: Current, specs: list[ConsumerSpec], *, unknown_class: str
) -> Response | Plan[Response]:
    done = make_response(request, status=204)
    _note(request, specs)
    writes = claims.plan_replacement(current, specs, unknown_class=unknown_class).writes
    return Plan(writes=writes, answer=done) if writes else done


def _note(request: Request, specs: list[ConsumerSpec]) -> None:
    """Describe the change of consumers."""
    names = dict.fromkeys(provider for spec in specs for provider in spec.amounts)
    request.note(
        "allocation.update" if names else "allocation.delete",
        *(uuid_text(spec.uuid) for spec in specs),
        providers=", ".join(islice(names, _PROVIDERS_MAX)),
    )


def _spec(uuid: bytes, described: Mapping[str, Any], options: Options) -> ConsumerSpec:
    # Bodies in old versions do not name project and user.
    project_id = described.get("project_id", options.incomplete_consumer_project_id)
    user_id = described.get("user_id", options.incomplete_consumer_user_id)
    for name, text in (("project_id", project_id), ("user_id", user_id)):
        if not is_text(text, length_max=255):
            raise BadRequest(f"The {name} must be text without NUL or half of a surrogate pair.")
    allocations = described["allocations"]
    if isinstance(allocations, list):
        amounts = {each["resource_provider"]["uuid"]: each["resources"] for each in allocations}
    else:
        amounts = {provider: each["resources"] for provider, each in allocations.items()}
    return ConsumerSpec(
        uuid=uuid,
        amounts=amounts,
        project_id=project_id,
        user_id=user_id,
        consumer_type=described.get("consumer_type"),
        generation=described.get("consumer_generation", msgspec.UNSET),
    )


def _uuid_problem(uuid: str) -> BadRequest:
    return BadRequest(f"Malformed consumer_uuid: {uuid}")
