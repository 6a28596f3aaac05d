"""Providers come, change and go: what each act writes, planned on the columns."""

from collections.abc import Callable
from dataclasses import dataclass

from roost.engine.state import State
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.journal import PutProvider, Write
from roost.model.names import uuid_bytes, uuid_form


def row_of(state: State, uuid: str) -> int:
    """Return the row of a provider.

    Raises:
        NotFound: there is none of that uuid.
    """
    row = state.providers.row_of_uuid.get(uuid_form(uuid))
    if row is None:
        raise NotFound("resource provider", uuid, message=f"No resource provider with uuid {uuid} found")
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A provider that is to be."""

    writes: Callable[[int], tuple[Write, ...]]  # of its identity
    parent_uuid: str | None
    root_uuid: str


def creation(state: State, *, uuid: str, name: str, parent_uuid: str | None = None) -> Creation:
    """Plan a new provider, without inventory.

    Args:
        uuid: its own, in the spelling that is kept.
        parent_uuid: of the provider it is to be a child of; None: it is a root.

    Raises:
        Conflict: the name or the uuid is taken.
        BadRequest: there is no such parent.
    """
    providers = state.providers
    body = uuid_bytes(uuid)
    assert body is not None, uuid
    parent_id, root_id, root_uuid = None, None, uuid
    if parent_uuid is not None:
        parent_row = providers.row_of_uuid.get(uuid_form(parent_uuid))
        if parent_row is None:
            raise BadRequest("Parent provider UUID does not exist.")
        root_row = providers.root.each[parent_row]
        parent_id, root_id, root_uuid = providers.ids[parent_row], providers.ids[root_row], providers.uuids[root_row]
        parent_uuid = providers.uuids[parent_row]
    if name in providers.row_of_name:
        raise _taken(f"name: {name}")
    if uuid in providers.row_of_uuid:
        raise _taken(f"uuid: {uuid}")

    def writes(number: int) -> tuple[Write, ...]:
        return (PutProvider(number, body, name, parent_id, number if root_id is None else root_id, 0),)

    return Creation(writes=writes, parent_uuid=parent_uuid, root_uuid=root_uuid)


def _taken(what: str) -> Conflict:
    return Conflict(f"Conflicting resource provider {what} already exists.", code="placement.duplicate_name")
