"""``/traits``, and the traits of a provider."""

from collections.abc import Sequence

from roost.api.http import Request, Response, make_response
from roost.api.json_schema import Schema
from roost.api.placement.handlers.providers import row_to_read
from roost.api.problems import Problem
from roost.engine.columns.state import State
from roost.errors import BadRequest, NotFound
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.placement.writes import labels, traits
from roost.placement.writes.providers import row_of

_LIST = Schema(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "associated": {"type": "string"}},
        "additionalProperties": False,
    }
)
_REPLACE = Schema(
    {
        "type": "object",
        "properties": {
            "traits": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 255}},
            "resource_provider_generation": {"type": "integer"},
        },
        "required": ["traits", "resource_provider_generation"],
        "additionalProperties": False,
    }
)


def list_traits(request: Request, current: Current) -> Response:
    """List traits, filtered by name and by use on providers."""
    query = request.query(_LIST)
    kind, value = _name_filter(query.get("name"))
    names = traits.find_matching(
        current.state,
        names=value.split(",") if kind == "in" else None,
        prefix=value if kind == "startswith" else None,
        is_associated=_parse_associated(query.get("associated")),
    )
    return make_response(request, {"traits": names}, changed_s=current.state.names_touched_s)


def _name_filter(text: str | None) -> tuple[str, str]:
    if text is None:
        return "", ""
    kind, colon, value = text.partition(":")
    if not colon:
        raise BadRequest(
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{text}"'
        )
    return kind, value


def _parse_associated(text: str | None) -> bool | None:
    if text is None:
        return None
    if text.lower() not in ("true", "false"):
        raise BadRequest('The query parameter "associated" only accepts "true" or "false"')
    return text.lower() == "true"


def show(request: Request, current: Current) -> Response:
    """Check that a trait exists: answer 204, or 404 if it does not."""
    _existing_trait(request, current.state)
    return make_response(request, status=204, changed_s=current.state.names_touched_s)


def ensure(request: Request, current: Current) -> Response | Plan[Response]:
    """Create a custom trait unless it exists."""
    name = request.parameters["name"]
    writes = traits.plan_existence(current, name)
    headers, state = request.location(f"/traits/{name}"), current.state
    if not writes:
        return make_response(request, status=204, headers=headers, changed_s=state.names_touched_s)
    return Plan(writes=writes, answer=make_response(request, status=201, headers=headers, changed_s=state.now_s))


def delete(request: Request, current: Current) -> Plan[Response]:
    """Delete a custom trait."""
    writes = traits.plan_removal(current.state, _existing_trait(request, current.state))
    return Plan(writes=writes, answer=make_response(request, status=204))


def _existing_trait(request: Request, state: State) -> str:
    """Return the name of the trait in the path.

    Raises:
        Problem: 404, the trait does not exist.
    """
    name = request.parameters["name"]
    try:
        traits.number_of(state, name)
    except NotFound as error:
        raise Problem(404, str(error)) from None
    return name


def show_of_provider(request: Request, current: Current) -> Response:
    """Show the traits of a provider."""
    state = current.state
    row = row_to_read(request, state)
    generation, changed_s = state.providers.generation.each[row], state.providers.touched_s.each[row]
    return _respond(request, labels.traits_of(state, row), generation=generation, changed_s=changed_s)


def replace_of_provider(request: Request, current: Current) -> Response | Plan[Response]:
    """Replace the traits of a provider."""
    body = request.json(_REPLACE)
    state = current.state
    row = row_of(state, request.parameters["uuid"])
    names, generation = sorted(set(body["traits"])), state.providers.generation.each[row]
    writes = labels.plan_traits(state, row, names=names, generation=body["resource_provider_generation"])
    if not writes:
        return _respond(request, names, generation=generation, changed_s=state.providers.touched_s.each[row])
    return Plan(writes=writes, answer=_respond(request, names, generation=generation + 1, changed_s=state.now_s))


def clear_of_provider(request: Request, current: Current) -> Response | Plan[Response]:
    """Remove all traits of a provider."""
    state = current.state
    writes = labels.plan_trait_removal(state, row_of(state, request.parameters["uuid"]))
    bare = make_response(request, status=204)
    return Plan(writes=writes, answer=bare) if writes else bare


def _respond(request: Request, names: Sequence[str], *, generation: int, changed_s: float) -> Response:
    return make_response(request, {"traits": names, "resource_provider_generation": generation}, changed_s=changed_s)
