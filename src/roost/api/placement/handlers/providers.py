"""``/resource_providers``: what offers inventory."""

import uuid
from functools import lru_cache
from typing import Any

import msgspec

from roost.api import versions
from roost.api.http import Request, Response, make_response
from roost.api.json_schema import Schema
from roost.api.placement import query_params
from roost.api.problems import Problem
from roost.engine.columns.state import State
from roost.errors import NotFound
from roost.model.names import uuid_form
from roost.model.request import ResourceGroup
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.placement.writes import providers
from roost.placement.writes.tree_bounds import check_tree

_NAME = {"type": "string", "maxLength": 200}
_UUID = {"type": "string", "format": "uuid"}
_PARENT = {"anyOf": [_UUID, {"type": "null"}]}


def _body_schema(properties: dict[str, object]) -> Schema:
    return Schema({"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False})


_CREATE = _body_schema({"name": _NAME, "uuid": _UUID})
_CREATE_NESTED = _body_schema({"name": _NAME, "uuid": _UUID, "parent_provider_uuid": _PARENT})
_UPDATE = _body_schema({"name": _NAME})
_UPDATE_NESTED = _body_schema({"name": _NAME, "parent_provider_uuid": _PARENT})
# Since when each filter is known, in the order in which an error lists them.
_FILTERS: tuple[tuple[versions.Version, str, dict[str, str]], ...] = (
    (versions.OLDEST, "name", {"type": "string"}),
    (versions.OLDEST, "uuid", _UUID),
    (versions.PROVIDERS_BY_MEMBERSHIP, "member_of", {"type": "string"}),
    (versions.PROVIDERS_BY_RESOURCES, "resources", {"type": "string"}),
    (versions.NESTED_PROVIDERS, "in_tree", _UUID),
    (versions.PROVIDERS_BY_TRAITS, "required", {"type": "string"}),
)


@lru_cache
def _list_schema(count: int) -> Schema:
    """Return the schema of the query string while the first filters are known."""
    properties = {name: schema for _, name, schema in _FILTERS[:count]}
    return Schema({"type": "object", "properties": properties, "additionalProperties": False})


# Since when each link is shown, in their order.
_LINKS: tuple[tuple[versions.Version, str], ...] = (
    (versions.OLDEST, "self"),
    (versions.OLDEST, "inventories"),
    (versions.OLDEST, "usages"),
    (versions.AGGREGATES, "aggregates"),
    (versions.TRAITS, "traits"),
    (versions.ALLOCATIONS_LINK, "allocations"),
)


def list_providers(request: Request, current: Current) -> Response:
    """List the providers that pass all filters."""
    state = current.state
    known = sum(request.supports(since) for since, _, _ in _FILTERS)
    asked = request.query(_list_schema(known))
    member_of, forbidden_aggregates = query_params.aggregates(request.values("member_of"), request.version)
    required, forbidden = query_params.traits(request.values("required"), request.version)
    group = ResourceGroup(
        resources=query_params.amounts(asked["resources"]) if "resources" in asked else {},
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        forbidden_aggregates=forbidden_aggregates,
        in_tree=asked.get("in_tree"),
    )
    # No name is every name.
    rows = providers.matching(state, group, name=asked.get("name") or None, uuid=asked.get("uuid"))
    touched_s = state.providers.touched_s.view[rows]
    changed_s = float(touched_s.max()) if len(rows) else state.now_s
    form = _Form(request)
    shown = ",".join([form.row(state, row) for row in request.while_active(rows.tolist())])
    return make_response(request, f'{{"resource_providers":[{shown}]}}'.encode(), changed_s=changed_s)


def show(request: Request, current: Current) -> Response:
    """Show one provider."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    return make_response(
        request, _Form(request).row(state, row).encode(), changed_s=state.providers.touched_s.each[row]
    )


def create(request: Request, current: Current) -> Response | Plan[Response]:
    """Create a provider."""
    body = creation_body(request)
    number = uuid_form(body.get("uuid") or str(uuid.uuid4()))
    creation = providers.creation(
        current.state, uuid=number, name=body["name"], parent_uuid=body.get("parent_provider_uuid")
    )
    _check_tree(request, current.state, creation.parent_uuid)
    headers = request.location(f"/resource_providers/{number}")
    if not request.supports(versions.CREATED_PROVIDER_IN_BODY):
        return Plan(create=creation.writes, answer=make_response(request, status=201, headers=headers))
    text = _Form(request).text(
        number, name=body["name"], generation=0, parent=creation.parent_uuid, root=creation.root_uuid
    )
    now_s = current.state.now_s
    return Plan(create=creation.writes, answer=make_response(request, text.encode(), headers=headers, changed_s=now_s))


def update(request: Request, current: Current) -> Plan[Response]:
    """Give a provider another name, or another place in the trees."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    body = revision_body(request)
    revision = providers.revision(
        state,
        row,
        name=body["name"],
        parent=(body["parent_provider_uuid"],) if "parent_provider_uuid" in body else None,
        may_move=request.supports(versions.RE_PARENTING),
    )
    _check_tree(request, state, revision.parent_uuid, moved_row=row)
    text = _Form(request).text(
        state.providers.uuids[row],
        name=body["name"],
        generation=state.providers.generation.each[row],
        parent=revision.parent_uuid,
        root=revision.root_uuid,
    )
    return Plan(writes=revision.writes, answer=make_response(request, text.encode(), changed_s=state.now_s))


def creation_body(request: Request) -> dict[str, Any]:
    """Return what is said of a new provider.

    Raises:
        BadRequest: it cannot be meant; so for the other one.
    """
    return _body(request, _CREATE_NESTED if request.supports(versions.NESTED_PROVIDERS) else _CREATE)


def revision_body(request: Request) -> dict[str, Any]:
    """Return what is said of a provider that there is."""
    return _body(request, _UPDATE_NESTED if request.supports(versions.NESTED_PROVIDERS) else _UPDATE)


def _body(request: Request, schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = request.json(schema)
    return body


def _check_tree(request: Request, state: State, parent_uuid: str | None, *, moved_row: int | None = None) -> None:
    options = request.options
    check_tree(
        state.providers,
        parent_uuid,
        moved_row=moved_row,
        depth_max=options.tree_depth_max,
        providers_max=options.tree_providers_max,
    )


def delete(request: Request, current: Current) -> Plan[Response]:
    """Delete a provider."""
    uuid_text = request.parameters["uuid"]
    try:
        row = providers.row_of(current.state, uuid_text)
    except NotFound:
        raise Problem(404, f"No resource provider with uuid {uuid_text} found for delete") from None
    return Plan(writes=providers.deletion(current.state, row), answer=make_response(request, status=204))


class _Form:
    """How providers are written as JSON for one request: its version, and where links begin.

    Written piece by piece, because a list may be long and no other answer is asked for as often.
    """

    __slots__ = ("_is_nested", "_pieces")

    def __init__(self, request: Request) -> None:
        self._is_nested = request.supports(versions.NESTED_PROVIDERS)
        base = request.url("/resource_providers/\0")
        rels = [rel for since, rel in _LINKS if request.supports(since)]
        links = [{"rel": rel, "href": f"{base}/{rel}" if rel != "self" else base} for rel in rels]
        # The uuid stands between the pieces.
        self._pieces = msgspec.json.encode(links).decode().split("\\u0000")

    def text(self, uuid_text: str, *, name: str, generation: int, parent: str | None, root: str) -> str:
        """Return a provider as it is shown."""
        end = "}"
        if self._is_nested:
            above = "null" if parent is None else f'"{parent}"'
            end = f',"parent_provider_uuid":{above},"root_provider_uuid":"{root}"}}'
        quoted, links = msgspec.json.encode(name).decode(), uuid_text.join(self._pieces)
        return f'{{"uuid":"{uuid_text}","name":{quoted},"generation":{generation},"links":{links}{end}'

    def row(self, state: State, row: int) -> str:
        """Return a provider that is in the columns."""
        columns = state.providers
        parent = columns.parent.each[row]
        return self.text(
            columns.uuids[row],
            name=columns.names[row],
            generation=columns.generation.each[row],
            parent=None if parent < 0 else columns.uuids[parent],
            root=columns.uuids[columns.root.each[row]],
        )


def row_to_read(request: Request, state: State) -> int:
    """Return the row of the provider that the path names, to read what belongs to it.

    Raises:
        Problem: there is none of that uuid.
    """
    try:
        return providers.row_of(state, request.parameters["uuid"])
    except NotFound as error:
        raise Problem(404, f"{error}: {error}") from None
