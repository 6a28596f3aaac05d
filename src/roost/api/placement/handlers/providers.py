"""``/resource_providers``: what offers inventory."""

import uuid
from typing import Any

from roost.api.placement import versions
from roost.api.placement.request import Request, Response, answer, newest, require_json
from roost.api.schema import Schema
from roost.engine.state import State
from roost.model.names import uuid_form
from roost.placement import providers
from roost.placement.current import Current
from roost.placement.plans import Plan

_CREATE = Schema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 200},
            "uuid": {"type": "string", "format": "uuid"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
)
_CREATE_NESTED = Schema(
    {
        **_CREATE.document,
        "properties": {
            **_CREATE.document["properties"],
            "parent_provider_uuid": {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]},
        },
    }
)


def list_providers(request: Request, current: Current) -> Response:
    """List providers."""
    state = current.state
    rows = sorted(state.providers.row_of_uuid.values())
    body = {"resource_providers": [shown(request, state, row) for row in rows]}
    times = [state.providers.touched_s.each[row] for row in rows]
    return answer(request, body, changed_s=newest(times, state.now_s))


def show(request: Request, current: Current) -> Response:
    """Show one provider."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    return answer(request, shown(request, state, row), changed_s=state.providers.touched_s.each[row])


def create(request: Request, current: Current) -> Response | Plan[Response]:
    """Create a provider."""
    require_json(request)
    body = request.json(_CREATE_NESTED if request.wants(versions.NESTED_PROVIDERS) else _CREATE)
    number = uuid_form(body.get("uuid") or str(uuid.uuid4()))
    creation = providers.creation(
        current.state, uuid=number, name=body["name"], parent_uuid=body.get("parent_provider_uuid")
    )
    headers = request.location(f"/resource_providers/{number}")
    if not request.wants(versions.CREATED_PROVIDER_IN_BODY):
        return Plan(create=creation.writes, answer=answer(request, status=201, headers=headers))
    value = _shown(
        request, number, name=body["name"], generation=0, parent=creation.parent_uuid, root=creation.root_uuid
    )
    now_s = current.state.now_s
    return Plan(create=creation.writes, answer=answer(request, value, headers=headers, changed_s=now_s))


def shown(request: Request, state: State, row: int) -> dict[str, Any]:
    """Return a provider as it is shown in the asked version."""
    providers = state.providers
    parent = providers.parent.each[row]
    return _shown(
        request, providers.uuids[row], name=providers.names[row], generation=providers.generation.each[row],
        parent=None if parent < 0 else providers.uuids[parent], root=providers.uuids[providers.root.each[row]],
    )  # fmt: skip


def _shown(
    request: Request, number: str, *, name: str, generation: int, parent: str | None, root: str
) -> dict[str, Any]:
    base = request.url(f"/resource_providers/{number}")
    rels = ["inventories", "usages"]
    if request.wants(versions.AGGREGATES):
        rels.append("aggregates")
    if request.wants(versions.TRAITS):
        rels.append("traits")
    if request.wants(versions.ALLOCATIONS_LINK):
        rels.append("allocations")
    links = [{"rel": "self", "href": base}, *({"rel": rel, "href": f"{base}/{rel}"} for rel in rels)]
    value: dict[str, Any] = {"uuid": number, "name": name, "generation": generation, "links": links}
    if request.wants(versions.NESTED_PROVIDERS):
        value |= {"parent_provider_uuid": parent, "root_provider_uuid": root}
    return value
