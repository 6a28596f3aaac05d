"""Providers: the writes that create, change and delete them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from roost.engine.candidates.provider_filter import find_providers
from roost.engine.candidates.query import GroupNeeds
from roost.engine.columns.name_table import NameTable
from roost.engine.columns.state import State
from roost.engine.columns.types import Rows
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.names import uuid_bytes
from roost.model.request import ResourceGroup
from roost.model.writes import DropProvider, PutProvider, Write

_LOOP = "creating loop in the provider tree is not allowed."
_NO_ROWS: Rows = np.empty(0, dtype=np.intp)


def row_of(state: State, uuid: str) -> int:
    """Return the row of a provider.

    Args:
        uuid: in the stored spelling; another spelling does not match.

    Raises:
        NotFound: there is no such provider.
    """
    row = state.providers.row_of_uuid.get(uuid)
    if row is None:
        raise NotFound("resource provider", uuid, message=f"No resource provider with uuid {uuid} found")
    return row


def find_matching(state: State, group: ResourceGroup, *, name: str | None = None, uuid: str | None = None) -> Rows:
    """Return the providers that alone satisfy a request group, optionally only the one with a name or uuid.

    An unknown aggregate or tree matches no provider.

    Raises:
        BadRequest: a trait or resource class is unknown.
    """
    tree_row = None
    if group.in_tree is not None:
        tree_row = state.providers.row_of_uuid.get(group.in_tree)
        if tree_row is None:
            return _NO_ROWS
    required = tuple(_trait_ids(state, sorted(names)) for names in group.required)
    forbidden = _trait_ids(state, sorted(group.forbidden))
    member_of = tuple(_find_numbers(state.aggregates, uuids) for uuids in group.member_of)
    if not all(member_of):
        return _NO_ROWS
    needs = GroupNeeds(
        resources=tuple((_class_id(state, each), amount) for each, amount in group.resources.items()),
        required=required,
        forbidden=forbidden,
        member_of=member_of,
        forbidden_aggregates=_find_numbers(state.aggregates, group.forbidden_aggregates),
        in_tree=tree_row,
    )
    rows = find_providers(state, needs)
    if name is not None:
        rows = rows[rows == state.providers.row_of_name.get(name, -1)]
    if uuid is not None:
        rows = rows[rows == state.providers.row_of_uuid.get(uuid, -1)]
    return rows


def _trait_ids(state: State, names: list[str]) -> frozenset[int]:
    found = set()
    for name in names:
        number = state.trait_ids.id_of(name)
        if number is None:
            raise BadRequest(f'Invalid trait(s) in "required" parameter: No such trait(s): {name}.')
        found.add(number)
    return frozenset(found)


def _class_id(state: State, name: str) -> int:
    number = state.class_ids.id_of(name)
    if number is None:
        raise BadRequest(f"Invalid resource class in resources parameter: No such resource class {name}.")
    return number


def _find_numbers(table: NameTable, names: frozenset[str]) -> frozenset[int]:
    return frozenset(number for name in names if (number := table.id_of(name)) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """The plan of a new provider."""

    writes: Callable[[int], tuple[Write, ...]]  # returns the writes for its identity
    parent_uuid: str | None
    root_uuid: str


def plan_creation(state: State, *, uuid: str, name: str, parent_uuid: str | None = None) -> Creation:
    """Plan a new provider without inventories.

    Args:
        uuid: in the stored spelling.
        parent_uuid: uuid of its parent; None: it is a root.

    Raises:
        Conflict: the name or the uuid is in use.
        BadRequest: the name is missing, or the parent does not exist.
    """
    providers = state.providers
    body = uuid_bytes(uuid)
    assert body is not None, uuid
    problem = f'Unable to create resource provider "{name}", {uuid}: Object action create failed because: '
    if not name:
        raise BadRequest(f"{problem}name is required")
    if parent_uuid == uuid:
        raise BadRequest(
            f"{problem}parent provider UUID cannot be same as UUID. "
            "Please set parent provider UUID to None if there is no parent."
        )
    parent_id, root_id, root_uuid = None, None, uuid
    if parent_uuid is not None:
        parent_row = _parent_row(state, parent_uuid, problem)
        root_row = providers.root.each[parent_row]
        parent_id, root_id, root_uuid = providers.ids[parent_row], providers.ids[root_row], providers.uuids[root_row]
    if uuid in providers.row_of_uuid:
        raise _duplicate_error(f"uuid: {uuid}")
    if name in providers.row_of_name:
        raise _duplicate_error(f"name: {name}")

    def writes(number: int) -> tuple[Write, ...]:
        return (PutProvider(number, body, name, parent_id, number if root_id is None else root_id, 0),)

    return Creation(writes=writes, parent_uuid=parent_uuid, root_uuid=root_uuid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The plan of a new name or parent for a provider."""

    writes: tuple[Write, ...]
    parent_uuid: str | None
    root_uuid: str


def plan_revision(
    state: State, row: int, *, name: str, parent: tuple[str | None] | None = None, may_move: bool = True
) -> Revision:
    """Plan a new name for a provider, or a new parent; its subtree follows.

    Args:
        parent: a tuple of the uuid of the new parent, or of None for a root; None: unchanged.
        may_move: whether a provider with a parent may get another one, or none.

    Raises:
        BadRequest: the parent does not exist or is below the provider, or the provider must not move.
        Conflict: the name is in use.
    """
    providers = state.providers
    parent_row = providers.parent.each[row]
    if parent is not None:
        parent_row = _new_parent(state, row, parent[0], may_move=may_move)
    if providers.row_of_name.get(name, row) != row:
        raise _duplicate_error(name)
    root_row = providers.root.each[parent_row] if parent_row >= 0 else row
    # Parents come before children, so each write follows the one of its parent.
    moved = [each for each in providers.subtree(row) if each != row] if parent_row != providers.parent.each[row] else []
    writes = [_put(state, row, name=name, parent_row=parent_row, root_row=root_row)]
    for each in moved:
        above = providers.parent.each[each]
        writes.append(_put(state, each, name=providers.names[each], parent_row=above, root_row=root_row))
    return Revision(
        writes=tuple(writes),
        parent_uuid=None if parent_row < 0 else providers.uuids[parent_row],
        root_uuid=providers.uuids[root_row],
    )


def _put(state: State, row: int, *, name: str, parent_row: int, root_row: int) -> PutProvider:
    providers = state.providers
    body = uuid_bytes(providers.uuids[row])
    assert body is not None
    return PutProvider(
        providers.ids[row],
        body,
        name,
        None if parent_row < 0 else providers.ids[parent_row],
        providers.ids[root_row],
        providers.versions[row] + 1,
    )


def _new_parent(state: State, row: int, parent_uuid: str | None, *, may_move: bool) -> int:
    """Return the row of the new parent, -1 for none."""
    providers = state.providers
    old_row = providers.parent.each[row]
    problem = f"Unable to save resource provider {providers.uuids[row]}: Object action "
    if parent_uuid is None:
        if old_row >= 0 and not may_move:
            raise BadRequest(f"{problem}update failed because: un-parenting a provider is not currently allowed.")
        return -1
    parent_row = _parent_row(state, parent_uuid, f"{problem}create failed because: ")
    if old_row >= 0 and old_row != parent_row and not may_move:
        raise BadRequest(f"{problem}update failed because: re-parenting a provider is not currently allowed.")
    if parent_row in providers.subtree(row):
        raise BadRequest(f"{problem}update failed because: {_LOOP}")
    return parent_row


def _parent_row(state: State, uuid: str, problem: str) -> int:
    row = state.providers.row_of_uuid.get(uuid)
    if row is None:
        raise BadRequest(f"{problem}parent provider UUID does not exist.")
    return row


def plan_deletion(state: State, row: int) -> tuple[Write, ...]:
    """Plan the deletion of a provider with its inventories and traits.

    Raises:
        Conflict: it has children or allocations.
    """
    providers = state.providers
    uuid = providers.uuids[row]
    if providers.children.get(row):
        raise Conflict(
            f"Unable to delete parent resource provider {uuid}: It has child resource providers.",
            code="placement.resource_provider.cannot_delete_parent",
        )
    if any(columns.used.each[row] for columns in state.classes.values()):
        raise Conflict(
            f"Unable to delete resource provider {uuid}: Resource provider has allocations.",
            code="placement.resource_provider.inuse",
        )
    return (DropProvider(providers.ids[row]),)


def _duplicate_error(conflict: str) -> Conflict:
    return Conflict(f"Conflicting resource provider {conflict} already exists.", code="placement.duplicate_name")
