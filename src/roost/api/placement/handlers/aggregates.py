"""The aggregates of a provider."""

from typing import Any

from roost.api.http import Request, Response, make_response
from roost.api.json_schema import Schema
from roost.model.names import uuid_form
from roost.model.placement import microversions
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.placement.writes import labels
from roost.placement.writes.providers import row_of

_UUIDS: dict[str, Any] = {"type": "array", "items": {"type": "string", "format": "uuid"}, "uniqueItems": True}
_BARE = Schema(_UUIDS)
_WITH_GENERATION = Schema(
    {
        "type": "object",
        "properties": {"aggregates": _UUIDS, "resource_provider_generation": {"type": "integer"}},
        "required": ["aggregates", "resource_provider_generation"],
        "additionalProperties": False,
    }
)


def show(request: Request, current: Current) -> Response:
    """Show the aggregates of a provider."""
    state = current.state
    row = row_of(state, request.parameters["uuid"])
    generation, changed_s = state.providers.generation.each[row], state.providers.touched_s.each[row]
    return _respond(request, labels.aggregates_of(state, row), generation=generation, changed_s=changed_s)


def replace(request: Request, current: Current) -> Plan[Response]:
    """Replace the aggregates of a provider."""
    state = current.state
    row = row_of(state, request.parameters["uuid"])
    if request.supports(microversions.AGGREGATES_WITH_GENERATION):
        body = request.json(_WITH_GENERATION)
        names, generation = body["aggregates"], body["resource_provider_generation"]
    else:
        names, generation = request.json(_BARE), None
    uuids = list(dict.fromkeys(map(uuid_form, names)))
    writes = labels.plan_aggregates(current, row, uuids=uuids, generation=generation)
    new_generation = state.providers.generation.each[row] + 1
    return Plan(writes=writes, answer=_respond(request, uuids, generation=new_generation, changed_s=state.now_s))


def _respond(request: Request, uuids: list[str], *, generation: int, changed_s: float) -> Response:
    value: dict[str, Any] = {"aggregates": uuids}
    if request.supports(microversions.AGGREGATES_WITH_GENERATION):
        value["resource_provider_generation"] = generation
    return make_response(request, value, changed_s=changed_s)
