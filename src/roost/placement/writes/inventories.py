"""Inventories of providers: the writes that create, change and delete them."""

import math
from collections.abc import Iterable, Mapping

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.names import AMOUNT_MAX
from roost.model.provider import Inventory
from roost.model.writes import InventoryRow, PutInventories, Write

_CONFLICT = "placement.concurrent_update"
_IN_USE = "placement.inventory.inuse"


def inventory_of(
    record: Mapping[str, float], *, resource_class: str, provider_uuid: str, may_reserve_all: bool, act: str
) -> Inventory:
    """Return an inventory with the defaults of omitted fields.

    Args:
        record: whole numbers within the limits of the schema, except the ratio.
        may_reserve_all: whether the whole total may be reserved.
        act: the verb in the error: create or update.

    Raises:
        BadRequest: the ratio or the reserved amount is invalid.
    """
    total, reserved = int(record["total"]), int(record.get("reserved", 0))
    ratio = float(record.get("allocation_ratio", 1.0))
    problem = (
        f"Unable to {act} inventory for resource provider {provider_uuid}: "
        f"Invalid inventory for '{resource_class}' on resource provider '{provider_uuid}'."
    )
    if not math.isfinite(ratio):
        raise BadRequest(f"{problem} The allocation ratio is not a finite number.")
    capacity = int((total - reserved) * ratio)
    if not may_reserve_all and capacity <= 0:
        raise BadRequest(f"{problem} The reserved value is greater than or equal to total.")
    # With a negative ratio, ``reserved > total`` gives a positive capacity, so it needs its own check.
    if capacity < 0 or reserved > total:
        raise BadRequest(f"{problem} The reserved value is greater than total.")
    if ratio < 0:
        raise BadRequest(f"{problem} The allocation ratio is less than 0.")
    return Inventory(
        total=total,
        reserved=reserved,
        min_unit=int(record.get("min_unit", 1)),
        max_unit=int(record.get("max_unit", AMOUNT_MAX)),
        step_size=int(record.get("step_size", 1)),
        allocation_ratio=ratio,
    )


def list_inventories(state: State, row: int) -> dict[str, Inventory]:
    """Return all inventories of a provider by resource class."""
    return {state.class_ids.name_of(class_id): _one(state, class_id, row) for class_id in _class_ids(state, row)}


def find_inventory(state: State, row: int, resource_class: str) -> Inventory | None:
    """Return one inventory, or None."""
    class_id = _find_class_id(state, row, resource_class)
    return None if class_id is None else _one(state, class_id, row)


def describe_changes(state: State, row: int, new: Mapping[str, Inventory]) -> dict[str, str]:
    """Return the difference between the inventories of a provider and new ones, as one text by resource class."""
    old = list_inventories(state, row)
    texts = {name: _describe_change(old.get(name), new.get(name)) for name in sorted({*old, *new})}
    return {name: text for name, text in texts.items() if text}


def _describe_change(old: Inventory | None, new: Inventory | None) -> str:
    """Return the changed fields as ``name before -> after``; empty: total, reserve and ratio are unchanged."""
    before, after = ("none" if each is None else f"{each.total}" for each in (old, new))
    parts = [f"total {before} -> {after}"] if before != after else []
    if new is None:
        return ", ".join(parts)
    reserved, ratio = (0, 1.0) if old is None else (old.reserved, old.allocation_ratio)
    if reserved != new.reserved:
        parts.append(f"reserved {reserved} -> {new.reserved}")
    if ratio != new.allocation_ratio:
        parts.append(f"allocation_ratio {ratio:g} -> {new.allocation_ratio:g}")
    return ", ".join(parts)


def check_generation(state: State, row: int, expected: int) -> None:
    """Refuse a change that is based on an older generation.

    Raises:
        Conflict: the provider has another generation.
    """
    if state.providers.generation.each[row] != expected:
        raise Conflict("resource provider generation conflict", code=_CONFLICT)


def plan_replacement(state: State, row: int, inventories: Mapping[str, Inventory]) -> tuple[Write, ...]:
    """Plan the replacement of all inventories of a provider.

    Raises:
        BadRequest: a resource class is unknown.
        Conflict: an inventory to delete is in use.
    """
    rows = []
    for name, inventory in inventories.items():
        class_id = state.class_ids.id_of(name)
        if class_id is None:
            raise unknown_class(state, row, name)
        rows.append(row_of(class_id, inventory))
    kept = {each.class_id for each in rows}
    used = _describe_use(state, row, (class_id for class_id in _class_ids(state, row) if class_id not in kept))
    if used:
        raise Conflict(f"update conflict: {used}", code=_IN_USE)
    return _writes(state, row, rows)


def unknown_class(state: State, row: int, name: str) -> BadRequest:
    """Return the error for an unknown class in a replacement."""
    uuid = state.providers.uuids[row]
    return BadRequest(
        f"Unknown resource class in inventory for resource provider {uuid}: No such resource class {name}."
    )


def plan_addition(state: State, row: int, *, resource_class: str, inventory: Inventory) -> tuple[Write, ...]:
    """Plan a further inventory of a provider.

    Raises:
        BadRequest: the class is unknown.
        Conflict: the provider already has such an inventory.
    """
    class_id = state.class_ids.id_of(resource_class)
    if class_id is None:
        uuid = state.providers.uuids[row]
        raise BadRequest(
            f"Unable to create inventory for resource provider {uuid}: No such resource class {resource_class}."
        )
    if class_id in _class_ids(state, row):
        raise Conflict(f"Update conflict: an inventory of class {resource_class} exists already", code=_CONFLICT)
    return _writes(state, row, [*rows_of(state, row), row_of(class_id, inventory)])


def plan_change(state: State, row: int, *, resource_class: str, inventory: Inventory) -> tuple[Write, ...]:
    """Plan the change of an inventory.

    Raises:
        NotFound: the class is unknown.
        BadRequest: the provider has no such inventory.
    """
    if resource_class not in state.class_ids:
        raise NotFound("resource class", resource_class, message=f"No such resource class {resource_class}.")
    class_id = _find_class_id(state, row, resource_class)
    if class_id is None:
        raise BadRequest(
            f"No inventory record with resource class for resource provider {state.providers.uuids[row]}: "
            f"No inventory of class {resource_class} found."
        )
    others = [each for each in rows_of(state, row) if each.class_id != class_id]
    return _writes(state, row, [*others, row_of(class_id, inventory)])


def plan_removal(state: State, row: int, resource_class: str) -> tuple[Write, ...]:
    """Plan the deletion of an inventory.

    Raises:
        NotFound: the provider has no such inventory.
        Conflict: it is in use.
    """
    class_id = _find_class_id(state, row, resource_class)
    if class_id is None:
        problem = f"No inventory of class {resource_class} found for delete"
        is_known = resource_class in state.class_ids
        reason = problem if is_known else f"No such resource class {resource_class}."
        raise NotFound("inventory", resource_class, message=f"{problem}: {reason}")
    used = _describe_use(state, row, [class_id])
    if used:
        raise Conflict(f"Unable to delete inventory of class {resource_class}: {used}", code=_CONFLICT)
    return _writes(state, row, [each for each in rows_of(state, row) if each.class_id != class_id])


def plan_clearing(state: State, row: int) -> tuple[Write, ...]:
    """Plan the deletion of all inventories of a provider.

    Raises:
        Conflict: one of them is in use.
    """
    used = _describe_use(state, row, _class_ids(state, row))
    if used:
        raise Conflict(used, code=_IN_USE)
    return _writes(state, row, [])


def _writes(state: State, row: int, rows: list[InventoryRow]) -> tuple[Write, ...]:
    providers = state.providers
    return (PutInventories(providers.ids[row], providers.generation.each[row], rows),)


def _describe_use(state: State, row: int, class_ids: Iterable[int]) -> str:
    """Return the error that names the used classes of a provider; empty: none is used."""
    names = [state.class_ids.name_of(class_id) for class_id in class_ids if state.classes[class_id].used.each[row]]
    if not names:
        return ""
    return f"Inventory for '{', '.join(names)}' on resource provider '{state.providers.uuids[row]}' in use."


def _class_ids(state: State, row: int) -> list[int]:
    return sorted(class_id for class_id, columns in state.classes.items() if row in columns.holders)


def _find_class_id(state: State, row: int, resource_class: str) -> int | None:
    class_id = state.class_ids.id_of(resource_class)
    return class_id if class_id is not None and row in state.inventory(class_id).holders else None


def rows_of(state: State, row: int) -> list[InventoryRow]:
    """Return the rows of all inventories of a provider."""
    return [row_of(class_id, _one(state, class_id, row)) for class_id in _class_ids(state, row)]


def _one(state: State, class_id: int, row: int) -> Inventory:
    columns = state.classes[class_id]
    return Inventory(
        total=columns.total.each[row],
        reserved=columns.reserved.each[row],
        min_unit=columns.min_unit.each[row],
        max_unit=columns.max_unit.each[row],
        step_size=columns.step_size.each[row],
        allocation_ratio=columns.ratio.each[row],
    )


def row_of(class_id: int, inventory: Inventory) -> InventoryRow:
    """Return the row of an inventory."""
    return InventoryRow(
        class_id,
        inventory.total,
        inventory.reserved,
        inventory.min_unit,
        inventory.max_unit,
        inventory.step_size,
        inventory.allocation_ratio,
    )
