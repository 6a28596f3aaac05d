"""``/resource_providers``: resource providers."""

import uuid
from functools import lru_cache
from typing import Any

import msgspec

from roost.api.http import Request, Response, make_response
from roost.api.json_schema import Schema
from roost.api.placement import query_params
from roost.api.problems import Problem
from roost.engine.columns.state import State
from roost.errors import NotFound
from roost.model.names import uuid_form
from roost.model.placement import microversions
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
# First version of each filter, in the order in which errors show them.
_FILTERS: tuple[tuple[microversions.Version, str, dict[str, str]], ...] = (
    (microversions.OLDEST, "name", {"type": "string"}),
    (microversions.OLDEST, "uuid", _UUID),
    (microversions.PROVIDERS_BY_MEMBERSHIP, "member_of", {"type": "string"}),
    (microversions.PROVIDERS_BY_RESOURCES, "resources", {"type": "string"}),
    (microversions.NESTED_PROVIDERS, "in_tree", _UUID),
    (microversions.PROVIDERS_BY_TRAITS, "required", {"type": "string"}),
)


@lru_cache
def _list_schema(count: int) -> Schema:
    """Return the schema of a query string with the first ``count`` filters."""
    properties = {name: schema for _, name, schema in _FILTERS[:count]}
    return Schema({"type": "object", "properties": properties, "additionalProperties": False})


# First version of each link, in order.
_LINKS: tuple[tuple[microversions.Version, str], ...] = (
    (microversions.OLDEST, "self"),
    (microversions.OLDEST, "inventories"),
    (microversions.OLDEST, "usages"),
    (microversions.AGGREGATES, "aggregates"),
    (microversions.TRAITS, "traits"),
    (microversions.ALLOCATIONS_LINK, "allocations"),
)


def list_providers(request: Request, current: Current) -> Response:
    """List the providers that pass all filters."""
    state = current.state
    count = sum(request.supports(since) for since, _, _ in _FILTERS)
    query = request.query(_list_schema(count))
    member_of, forbidden_aggregates = query_params.aggregates(request.values("member_of"), request.version)
    required, forbidden = query_params.traits(request.values("required"), request.version)
    group = ResourceGroup(
        resources=query_params.amounts(query["resources"]) if "resources" in query else {},
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        forbidden_aggregates=forbidden_aggregates,
        in_tree=query.get("in_tree"),
    )
    # An empty name matches every name.
    rows = providers.find_matching(state, group, name=query.get("name") or None, uuid=query.get("uuid"))
    touched_s = state.providers.touched_s.view[rows]
    changed_s = float(touched_s.max()) if len(rows) else state.now_s
    form = _Form(request)
    text = ",".join([form.row(state, row) for row in request.while_active(rows.tolist())])
    return make_response(request, f'{{"resource_providers":[{text}]}}'.encode(), changed_s=changed_s)


def show(request: Request, current: Current) -> Response:
    """Show a provider."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    return make_response(
        request, _Form(request).row(state, row).encode(), changed_s=state.providers.touched_s.each[row]
    )


def create(request: Request, current: Current) -> Response | Plan[Response]:
    """Create a provider."""
    body = creation_body(request)
    number = uuid_form(body.get("uuid") or str(uuid.uuid4()))
    request.note("", number, name=body["name"])
    creation = providers.plan_creation(
        current.state, uuid=number, name=body["name"], parent_uuid=body.get("parent_provider_uuid")
    )
    _check_tree(request, current.state, creation.parent_uuid)
    headers = request.location(f"/resource_providers/{number}")
    if not request.supports(microversions.CREATED_PROVIDER_IN_BODY):
        return Plan(create=creation.writes, answer=make_response(request, status=201, headers=headers))
    text = _Form(request).text(
        number, name=body["name"], generation=0, parent=creation.parent_uuid, root=creation.root_uuid
    )
    now_s = current.state.now_s
    return Plan(create=creation.writes, answer=make_response(request, text.encode(), headers=headers, changed_s=now_s))


def update(request: Request, current: Current) -> Plan[Response]:
    """Rename a provider, or change its parent."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    body = revision_body(request)
    revision = providers.plan_revision(
        state,
        row,
        name=body["name"],
        parent=(body["parent_provider_uuid"],) if "parent_provider_uuid" in body else None,
        may_move=request.supports(microversions.RE_PARENTING),
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
    """Return the body of a request to create a provider.

    Raises:
        BadRequest: the body is invalid.
    """
    return _body(request, _CREATE_NESTED if request.supports(microversions.NESTED_PROVIDERS) else _CREATE)


def revision_body(request: Request) -> dict[str, Any]:
    """Return the body of a request to change a provider.

    Raises:
        BadRequest: the body is invalid.
    """
    return _body(request, _UPDATE_NESTED if request.supports(microversions.NESTED_PROVIDERS) else _UPDATE)


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
    return Plan(writes=providers.plan_deletion(current.state, row), answer=make_response(request, status=204))


class _Form:
    """Writes providers as JSON for the version and mount prefix of a request.

    Text is concatenated because lists may be long, and this is the most frequent response.
    """

    __slots__ = ("_is_nested", "_pieces")

    def __init__(self, request: Request) -> None:
        self._is_nested = request.supports(microversions.NESTED_PROVIDERS)
        base = request.url("/resource_providers/\0")
        rels = [rel for since, rel in _LINKS if request.supports(since)]
        links = [{"rel": rel, "href": f"{base}/{rel}" if rel != "self" else base} for rel in rels]
        # The uuid goes between the pieces.
        self._pieces = msgspec.json.encode(links).decode().split("\\u0000")

    def text(self, uuid_text: str, *, name: str, generation: int, parent: str | None, root: str) -> str:
        """Return a provider as JSON."""
        end = "}"
        if self._is_nested:
            parent_text = "null" if parent is None else f'"{parent}"'
            end = f',"parent_provider_uuid":{parent_text},"root_provider_uuid":"{root}"}}'
        quoted, links = msgspec.json.encode(name).decode(), uuid_text.join(self._pieces)
        return f'{{"uuid":"{uuid_text}","name":{quoted},"generation":{generation},"links":{links}{end}'

    def row(self, state: State, row: int) -> str:
        """Return a provider of the columns as JSON."""
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
    """Return the row of the provider in the path.

    Raises:
        Problem: 404.
    """
    try:
        return providers.row_of(state, request.parameters["uuid"])
    except NotFound as error:
        raise Problem(404, f"{error}: {error}") from None
