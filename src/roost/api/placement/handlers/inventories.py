"""``/resource_providers/{uuid}/inventories``: the inventories of a provider."""

from collections.abc import Mapping
from typing import Any

import msgspec

from roost.api.http import Request, Response, make_response
from roost.api.json_schema import Schema
from roost.api.problems import Problem
from roost.engine.columns.state import State
from roost.errors import NotFound
from roost.model.names import AMOUNT_MAX, RATIO_MAX
from roost.model.placement import microversions
from roost.model.provider import Inventory
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.placement.writes import inventories, providers

_NAMES = "^[A-Z0-9_]+$"
_GENERATION = {"type": "integer"}
_FROM_0 = {"type": "integer", "maximum": AMOUNT_MAX, "minimum": 0}
_FROM_1 = {"type": "integer", "maximum": AMOUNT_MAX, "minimum": 1}
_RECORD = {
    "resource_provider_generation": _GENERATION,
    "total": _FROM_1,
    "reserved": _FROM_0,
    "min_unit": _FROM_1,
    "max_unit": _FROM_1,
    "step_size": _FROM_1,
    "allocation_ratio": {"type": "number", "maximum": RATIO_MAX},
}


def _object(properties: Mapping[str, object], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_CHANGE_ONE = Schema(_object(_RECORD, ["total", "resource_provider_generation"]))
_ADD = Schema(_object(_RECORD | {"resource_class": {"type": "string", "pattern": _NAMES}}, ["total", "resource_class"]))
_ONE_OF_ALL = _object(_RECORD, ["total"])
REPLACE = Schema(
    _object(
        {
            "resource_provider_generation": _GENERATION,
            "inventories": {"type": "object", "patternProperties": {_NAMES: _ONE_OF_ALL}},
        },
        ["resource_provider_generation", "inventories"],
    )
)
# For records under an invalid class name, which the schema of the body does not check.
_RECORD_SCHEMA = Schema(_ONE_OF_ALL)


def list_inventories(request: Request, current: Current) -> Response:
    """Show all inventories of a provider."""
    state = current.state
    row = _row_to_show(request, state)
    generation = state.providers.generation.each[row]
    return _respond_all(request, state, row, content=inventories.list_inventories(state, row), generation=generation)


def show(request: Request, current: Current) -> Response:
    """Show one inventory of a provider."""
    state, name = current.state, request.parameters["resource_class"]
    row = _row_to_show(request, state)
    inventory = inventories.find_inventory(state, row, name)
    if inventory is None:
        raise Problem(404, f"No inventory of class {name} for {state.providers.uuids[row]}")
    changed_s = state.providers.touched_s.each[row]
    return _respond_one(request, inventory, generation=state.providers.generation.each[row], changed_s=changed_s)


def add(request: Request, current: Current) -> Plan[Response]:
    """Add an inventory to a provider."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    body = request.json(_ADD)
    name = body["resource_class"]
    inventory = _parse_inventory(request, state, row, name=name, record=body, act="create")
    _note(request, state, row, new={**inventories.list_inventories(state, row), name: inventory})
    path = f"/resource_providers/{state.providers.uuids[row]}/inventories/{name}"
    created = _respond_one(
        request,
        inventory,
        generation=_next_generation(state, row),
        changed_s=state.now_s,
        status=201,
        headers=request.location(path),
    )
    return Plan(writes=inventories.plan_addition(state, row, resource_class=name, inventory=inventory), answer=created)


def replace(request: Request, current: Current) -> Plan[Response]:
    """Replace all inventories of a provider."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    body = request.json(REPLACE)
    inventories.check_generation(state, row, body["resource_provider_generation"])
    new_inventories = {}
    for name, record in body["inventories"].items():
        if name not in state.class_ids and _RECORD_SCHEMA.problem(record) is not None:
            raise inventories.unknown_class(state, row, name)
        new_inventories[name] = _parse_inventory(request, state, row, name=name, record=record, act="update")
    writes = inventories.plan_replacement(state, row, new_inventories)
    _note(request, state, row, new=new_inventories)
    return Plan(
        writes=writes,
        answer=_respond_all(request, state, row, content=new_inventories, generation=_next_generation(state, row)),
    )


def change(request: Request, current: Current) -> Plan[Response]:
    """Change one inventory of a provider."""
    state, name = current.state, request.parameters["resource_class"]
    row = providers.row_of(state, request.parameters["uuid"])
    body = request.json(_CHANGE_ONE)
    inventories.check_generation(state, row, body["resource_provider_generation"])
    inventory = _parse_inventory(request, state, row, name=name, record=body, act="update")
    writes = inventories.plan_change(state, row, resource_class=name, inventory=inventory)
    _note(request, state, row, new={**inventories.list_inventories(state, row), name: inventory})
    response = _respond_one(request, inventory, generation=_next_generation(state, row), changed_s=state.now_s)
    return Plan(writes=writes, answer=response)


def remove(request: Request, current: Current) -> Plan[Response]:
    """Delete one inventory of a provider."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    name = request.parameters["resource_class"]
    try:
        writes = inventories.plan_removal(state, row, name)
    except NotFound as error:
        raise Problem(404, str(error)) from None
    others = inventories.list_inventories(state, row)
    _note(request, state, row, new={each: inventory for each, inventory in others.items() if each != name})
    return Plan(writes=writes, answer=make_response(request, status=204))


def clear(request: Request, current: Current) -> Plan[Response]:
    """Delete all inventories of a provider."""
    state = current.state
    row = providers.row_of(state, request.parameters["uuid"])
    _note(request, state, row, new={})
    return Plan(writes=inventories.plan_clearing(state, row), answer=make_response(request, status=204))


def _note(request: Request, state: State, row: int, *, new: Mapping[str, Inventory]) -> None:
    """Describe the change of a provider's inventories in its record."""
    if request.change is not None:
        uuid = state.providers.uuids[row]
        request.note("", uuid)
        request.note_object(uuid, inventories.describe_changes(state, row, new))


def _row_to_show(request: Request, state: State) -> int:
    try:
        return providers.row_of(state, request.parameters["uuid"])
    except NotFound as error:
        raise Problem(404, f"No resource provider with uuid {request.parameters['uuid']} found : {error}") from None


def _parse_inventory(
    request: Request, state: State, row: int, *, name: str, record: Mapping[str, Any], act: str
) -> Inventory:
    """Return the inventory in a record."""
    return inventories.inventory_of(
        record,
        resource_class=name,
        provider_uuid=state.providers.uuids[row],
        act=act,
        may_reserve_all=request.supports(microversions.ALL_MAY_BE_RESERVED),
    )


def _next_generation(state: State, row: int) -> int:
    generation: int = state.providers.generation.each[row] + 1
    return generation


def _respond_one(
    request: Request,
    inventory: Inventory,
    *,
    generation: int,
    changed_s: float,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    body = msgspec.structs.asdict(inventory) | {"resource_provider_generation": generation}
    return make_response(request, body, status=status, changed_s=changed_s, headers=headers)


def _respond_all(
    request: Request, state: State, row: int, *, content: Mapping[str, Inventory], generation: int
) -> Response:
    value = {"resource_provider_generation": generation, "inventories": content}
    is_new = generation != state.providers.generation.each[row]
    changed_s = state.now_s if is_new else state.providers.touched_s.each[row]
    if content or not request.supports(microversions.CACHE_HEADERS):
        return make_response(request, value, changed_s=changed_s)
    # As in OpenStack Placement, an empty list has no header ``last-modified``.
    return make_response(request, value, headers={"cache-control": "no-cache"})
