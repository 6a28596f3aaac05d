"""Usage of a provider, and of a project or user."""

from typing import Any

from roost.api.http import Request, Response, make_response
from roost.api.json_schema import Schema
from roost.api.placement.handlers.providers import row_to_read
from roost.model.placement import microversions
from roost.placement import usages
from roost.placement.current import Current

_ID = {"type": "string", "minLength": 1, "maxLength": 255}
_OWNER: dict[str, Any] = {
    "type": "object",
    "properties": {"project_id": _ID, "user_id": _ID},
    "required": ["project_id"],
    "additionalProperties": False,
}
_OWNED = Schema(_OWNER)
_OWNED_BY_TYPE = Schema(
    {
        **_OWNER,
        "properties": {
            **_OWNER["properties"],
            "consumer_type": {
                "type": "string",
                "pattern": "^[A-Z0-9_]+$|^all|^unknown$",
                "minLength": 1,
                "maxLength": 255,
            },
        },
    }
)
_ALL = "all"  # in place of a type: the sum of all types


def show(request: Request, current: Current) -> Response:
    """Show the usage of a provider."""
    state = current.state
    row = row_to_read(request, state)
    generation = state.providers.generation.each[row]
    body = {"resource_provider_generation": generation, "usages": usages.of_provider(state, row)}
    return make_response(request, body, changed_s=state.now_s)


def show_by_owner(request: Request, current: Current) -> Response:
    """Show the usage of a project, or of one of its users; since 1.38 by consumer type."""
    state = current.state
    has_types = request.supports(microversions.CONSUMER_TYPES)
    query = request.query(_OWNED_BY_TYPE if has_types else _OWNED)
    holders = usages.holders_of(state, query["project_id"], user_id=query.get("user_id"))
    by_type = usages.by_type(state, request.while_active(holders))
    if not has_types:
        body: dict[str, Any] = usages.by_class(state, usages.total(by_type.values()))
    else:
        consumer_type = query.get("consumer_type")
        if consumer_type == _ALL:
            by_type = {_ALL: usages.total(by_type.values())} if by_type else {}
        elif consumer_type is not None:
            by_type = {consumer_type: by_type[consumer_type]} if consumer_type in by_type else {}
        body = {
            name: {**usages.by_class(state, usage), "consumer_count": usage.consumer_count}
            for name, usage in by_type.items()
        }
    return make_response(request, {"usages": body}, changed_s=state.now_s)
