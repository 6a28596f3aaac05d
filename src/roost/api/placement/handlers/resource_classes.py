"""``/resource_classes``: names of resource classes."""

from typing import Any

from roost.api.http import Request, Response, make_response
from roost.api.json_schema import Schema
from roost.errors import BadRequest
from roost.model.placement import microversions
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.placement.writes import resource_classes

_NAME_BODY = Schema(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": "^CUSTOM_[A-Z0-9_]+$", "maxLength": 255}},
        "required": ["name"],
        "additionalProperties": False,
    }
)


def list_classes(request: Request, current: Current) -> Response:
    """List all classes."""
    state = current.state
    body = {"resource_classes": [_describe_class(request, name) for name in state.class_ids.names]}
    return make_response(request, body, changed_s=state.names_touched_s)


def show(request: Request, current: Current) -> Response:
    """Show a class."""
    name = request.parameters["name"]
    resource_classes.number_of(current.state, name)
    return make_response(request, _describe_class(request, name), changed_s=current.state.names_touched_s)


def new_name(request: Request) -> str:
    """Return the name in the body of a request to create a class."""
    name: str = request.json(_NAME_BODY)["name"]
    return name


def create(request: Request, current: Current) -> Plan[Response]:
    """Create a class."""
    name = new_name(request)
    request.note("", name)
    writes = resource_classes.plan_creation(current, name)
    return Plan(writes=writes, answer=make_response(request, status=201, headers=_location(request, name)))


def update(request: Request, current: Current) -> Response | Plan[Response]:
    """Create a class unless it exists; before 1.7, rename it."""
    name = request.parameters["name"]
    if not request.supports(microversions.RESOURCE_CLASS_IDEMPOTENT):
        return _rename(request, current, name)
    problem = _NAME_BODY.problem({"name": name})
    if problem is not None:
        raise BadRequest(f"JSON does not validate: {problem}")
    writes = resource_classes.plan_existence(current, name)
    if not writes:
        return make_response(request, status=204, headers=_location(request, name))
    return Plan(writes=writes, answer=make_response(request, status=201, headers=_location(request, name)))


def _rename(request: Request, current: Current, name: str) -> Response | Plan[Response]:
    new = request.json(_NAME_BODY)["name"]
    writes = resource_classes.plan_new_name(current.state, name, to=new)
    renamed = make_response(request, _describe_class(request, new))
    return Plan(writes=writes, answer=renamed) if writes else renamed


def delete(request: Request, current: Current) -> Plan[Response]:
    """Delete a class."""
    writes = resource_classes.plan_removal(current.state, request.parameters["name"])
    return Plan(writes=writes, answer=make_response(request, status=204))


def _describe_class(request: Request, name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": request.url(f"/resource_classes/{name}")}]}


def _location(request: Request, name: str) -> dict[str, str]:
    return request.location(f"/resource_classes/{name}")
