"""Traits: the writes that create and delete them."""

import re
from collections.abc import Sequence

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.names import is_trait, standard_traits
from roost.model.writes import DropSymbol, Write
from roost.placement.current import Current

_KIND = "trait"


def number_of(state: State, name: str) -> int:
    """Return the number of a trait.

    Raises:
        NotFound: there is no such trait.
    """
    number = state.trait_ids.id_of(name)
    if number is None:
        raise NotFound("trait", name, message=f"No such trait(s): {name}.")
    return number


def find_matching(
    state: State, *, names: Sequence[str] | None = None, prefix: str | None = None, is_associated: bool | None = None
) -> Sequence[str]:
    """Return names of traits in the order of their creation.

    Args:
        names: only these; None: any.
        prefix: start of the name, as a pattern of SQL: case does not matter, ``_`` is any character and ``%`` any
            text; None: any.
        is_associated: whether a provider has the trait; None: either.
    """
    found: Sequence[str] = state.trait_ids.names
    if names is not None:
        given = set(names)
        found = [name for name in found if name in given]
    if prefix is not None:
        pattern = re.compile(_as_expression(prefix), re.IGNORECASE | re.DOTALL)
        found = [name for name in found if pattern.match(name)]
    if is_associated is not None:
        used = state.traits.find_used()
        found = [name for name in found if (state.trait_ids.id_of(name) in used) is is_associated]
    return found


def _as_expression(prefix: str) -> str:
    return "".join({"%": ".*", "_": "."}.get(letter) or re.escape(letter) for letter in prefix)


def plan_existence(current: Current, name: str) -> tuple[Write, ...]:
    """Plan the creation of a custom trait; if it exists, write nothing.

    Raises:
        BadRequest: the name is not that of a custom trait.
    """
    if not is_trait(name) or name in standard_traits():
        raise BadRequest(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "
            '"CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    return () if name in current.state.trait_ids else (current.new_symbol(_KIND, name),)


def plan_removal(state: State, name: str) -> tuple[Write, ...]:
    """Plan the deletion of an unused trait.

    Raises:
        NotFound: there is no such trait.
        BadRequest: it is a standard one.
        Conflict: a provider has it.
    """
    number = number_of(state, name)
    if name in standard_traits():
        raise BadRequest(f"Cannot delete standard trait {name}.")
    if number in state.traits.find_used():
        raise Conflict(f"The trait {name} is in use by a resource provider.")
    return (DropSymbol(_KIND, number, float(int(state.now_s))),)
