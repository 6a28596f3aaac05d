"""Resource classes are named: what each act writes, planned on the columns."""

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.names import is_resource_class, standard_resource_classes
from roost.model.writes import DropSymbol, RenameSymbol, Write
from roost.placement.current import Current

_KIND = "resource_class"


def number_of(state: State, name: str) -> int:
    """Return the number of a class.

    Raises:
        NotFound: there is none of that name.
    """
    number = state.class_ids.id_of(name)
    if number is None:
        raise NotFound("resource class", name, message=f"No such resource class {name}.")
    return number


def creation(current: Current, name: str) -> tuple[Write, ...]:
    """Plan a new class.

    Raises:
        BadRequest: the name is none of a custom class.
        Conflict: there is one of that name.
    """
    if name in current.state.class_ids:
        raise Conflict(f"Conflicting resource class already exists: {name}")
    return ensuring(current, name)


def ensuring(current: Current, name: str) -> tuple[Write, ...]:
    """Plan that a class is there; nothing is to be written where it is.

    Raises:
        BadRequest: the name is none of a custom class.
    """
    _check_custom(name)
    return () if name in current.state.class_ids else (current.new_symbol(_KIND, name),)


def renaming(state: State, name: str, *, to: str) -> tuple[Write, ...]:
    """Plan another name for a class; inventories and allocations of it stay.

    Raises:
        NotFound: there is no such class.
        BadRequest: it is a standard one, or the new name is none of a custom class.
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


def removal(state: State, name: str) -> tuple[Write, ...]:
    """Plan the end of a class that no provider offers.

    Raises:
        NotFound: there is no such class.
        BadRequest: it is a standard one.
        Conflict: a provider has inventory of it.
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
    # A pattern of JSON Schema lets a line break at the end pass.
    if not is_resource_class(name) or name in standard_resource_classes():
        raise BadRequest(f"JSON does not validate: {name!r} does not match '^CUSTOM_[A-Z0-9_]+$'")
