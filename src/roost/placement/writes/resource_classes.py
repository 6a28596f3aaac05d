"""Resource classes: the writes that create, rename and delete them."""

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.names import is_resource_class, standard_resource_classes
from roost.model.writes import DropSymbol, RenameSymbol, Write
from roost.placement.current import Current

_KIND = "resource_class"


def number_of(state: State, name: str) -> int:
    """Return the number of a class.

    Raises:
        NotFound: there is no such class.
    """
    number = state.class_ids.id_of(name)
    if number is None:
        raise NotFound("resource class", name, message=f"No such resource class {name}.")
    return number


def plan_creation(current: Current, name: str) -> tuple[Write, ...]:
    """Plan a new class.

    Raises:
        BadRequest: the name is not that of a custom class.
        Conflict: the class exists.
    """
    if name in current.state.class_ids:
        raise Conflict(f"Conflicting resource class already exists: {name}")
    return plan_existence(current, name)


def plan_existence(current: Current, name: str) -> tuple[Write, ...]:
    """Plan the creation of a class; if it exists, write nothing.

    Raises:
        BadRequest: the name is not that of a custom class.
    """
    _check_custom(name)
    return () if name in current.state.class_ids else (current.new_symbol(_KIND, name),)


def plan_new_name(state: State, name: str, *, to: str) -> tuple[Write, ...]:
    """Plan another name for a class; its inventories and allocations stay.

    Raises:
        NotFound: there is no such class.
        BadRequest: it is a standard one, or the new name is not that of a custom class.
        Conflict: another class has that name.
    """
    number = number_of(state, name)
    if name in standard_resource_classes():
        raise BadRequest(f"Cannot update standard resource class {name}")
    _check_custom(to)
    if to == name:
        return ()
    if to in state.class_ids:
        raise Conflict(f"Resource class already exists: {to}")
    return (RenameSymbol(_KIND, number, to),)


def plan_removal(state: State, name: str) -> tuple[Write, ...]:
    """Plan the deletion of a class without inventories.

    Raises:
        NotFound: there is no such class.
        BadRequest: it is a standard one.
        Conflict: a provider has an inventory of it.
    """
    number = number_of(state, name)
    if name in standard_resource_classes():
        raise BadRequest(f"Error in delete resource class: Cannot delete standard resource class {name}.")
    columns = state.classes.get(number)
    if columns is not None and columns.holders:
        raise Conflict(
            f"Error in delete resource class: Cannot delete resource class {name}. Class is in use in inventory."
        )
    return (DropSymbol(_KIND, number, float(int(state.now_s))),)


def _check_custom(name: str) -> None:
    # The pattern in the JSON Schema would also accept a line break at the end.
    if not is_resource_class(name) or name in standard_resource_classes():
        raise BadRequest(f"JSON does not validate: {name!r} does not match '^CUSTOM_[A-Z0-9_]+$'")
