"""Writes that create, change and delete aggregates, and change their members.

An aggregate can be deleted only without members. The deletion clears its name and metadata. Its number and version
stay, so that concurrent changes by processes unaware of the deletion are refused.
"""

from collections.abc import Mapping, Sequence

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict, NotFound
from roost.fleet.name_rules import check_name, uuid_bytes_of
from roost.model.host import Aggregate
from roost.model.names import is_text, uuid_form
from roost.model.writes import PutAggregate, PutMembership, Write
from roost.ports import FleetLedger

_TEXT_MAX = 255
_PAIRS_MAX = 1000


def is_named(state: State, uuid: str) -> bool:
    """Return whether an aggregate has a name.

    Placement clients create aggregates without names: they put a provider into an unknown aggregate.
    """
    number = state.aggregates.id_of(uuid)
    return number is not None and bool(state.aggregate_names[number])


def is_there(state: State, number: int) -> bool:
    """Return whether an aggregate exists: it has a name, metadata or members."""
    return bool(state.aggregate_names[number] or state.metadata[number]) or bool(members(state, number))


def members(state: State, number: int) -> list[int]:
    """Return the rows of the providers in an aggregate, in order."""
    found: list[int] = state.membership.mask_of(number).nonzero()[0].tolist()
    return found


def aggregate_of(state: State, uuid: str) -> int:
    """Return the number of an aggregate.

    Raises:
        NotFound: there is no such aggregate.
    """
    number = state.aggregates.id_of(uuid_form(uuid))
    if number is None or not is_there(state, number):
        raise NotFound("aggregate", uuid)
    return number


def check_metadata(metadata: Mapping[str, str]) -> None:
    """Refuse metadata that some database cannot store.

    Raises:
        BadRequest: there are too many pairs, a key is empty, or a key or value is too long or not text.
    """
    if len(metadata) > _PAIRS_MAX:
        raise BadRequest(f"metadata must be {_PAIRS_MAX:,} pairs at most, got {len(metadata):,}")
    for key, value in metadata.items():
        if not key or not is_text(key, length_max=_TEXT_MAX):
            raise BadRequest(f"a key of metadata must be 1..{_TEXT_MAX} characters of text, got {key[:70]!r}")
        if not is_text(value, length_max=_TEXT_MAX):
            raise BadRequest(f"metadata {key}: its value must be {_TEXT_MAX} characters of text at most")


def creation(journal: FleetLedger, aggregate: Aggregate) -> PutAggregate:
    """Plan a new aggregate, or a name and metadata for an aggregate without a name.

    Args:
        aggregate: the aggregate; no named aggregate has its uuid.

    Raises:
        BadRequest: the uuid or the name is malformed.
    """
    check_name(aggregate.name, f"aggregate {aggregate.uuid}")
    state = journal.state
    number = state.aggregates.id_of(uuid_form(aggregate.uuid))
    body = uuid_bytes_of(aggregate.uuid, "aggregate")
    version = 0 if number is None else state.aggregate_versions[number] + 1
    number = journal.new_id("aggregate") if number is None else number
    return PutAggregate(number, body, aggregate.name, aggregate.metadata, version)


def check_name_free(state: State, name: str) -> None:
    """Refuse the name of another aggregate.

    Raises:
        Conflict: the name is in use.
    """
    for number, each in state.aggregate_names.items():
        if each == name:
            raise Conflict(
                f"the name {name!r} is taken by aggregate {state.aggregates.name_of(number)}",
                problem_type="already-exists",
            )


def change(
    state: State, number: int, *, name: str | None, metadata: Mapping[str, str | None] | None
) -> PutAggregate | None:
    """Plan a change of name or metadata; return None if nothing changes.

    Args:
        name: the new name; None: unchanged.
        metadata: new values by key; the value None deletes the key, and other keys stay.

    Raises:
        BadRequest: name or metadata cannot be stored.
        Conflict: another aggregate has the name.
    """
    old_name, old = state.aggregate_names[number], state.metadata[number]
    new_name = old_name if name is None else name
    if new_name != old_name:
        check_name(new_name, "the aggregate", length_min=1)
        check_name_free(state, new_name)
    pairs: dict[str, str | None] = {**old, **(metadata or {})}
    new = {key: value for key, value in pairs.items() if value is not None}
    check_metadata(new)
    return None if (new_name, new) == (old_name, old) else _put(state, number, name=new_name, metadata=new)


def end(state: State, number: int) -> tuple[Write, ...]:
    """Plan the deletion of an aggregate.

    Raises:
        Conflict: it has members.
    """
    inside = len(members(state, number))
    if inside:
        uuid = state.aggregates.name_of(number)
        raise Conflict(f"aggregate {uuid} has {inside:,} {'member' if inside == 1 else 'members'}: remove them first")
    return (_put(state, number, name="", metadata={}),)


def join(state: State, number: int, host_rows: Sequence[int]) -> tuple[Write, ...]:
    """Plan the addition of hosts to an aggregate; skip hosts already in it."""
    rows = [int(state.hosts.provider_row.each[row]) for row in host_rows]
    return tuple(
        _membership(state, row, state.membership.labels_of(row) | {number})
        for row in rows
        if number not in state.membership.labels_of(row)
    )


def leave(state: State, number: int, host_rows: Sequence[int]) -> tuple[Write, ...]:
    """Plan the removal of hosts from an aggregate; skip hosts outside it.

    Raises:
        NotFound: none of the hosts is a member.
    """
    rows = [int(state.hosts.provider_row.each[row]) for row in host_rows]
    inside = [row for row in rows if number in state.membership.labels_of(row)]
    if not inside:
        uuid = state.aggregates.name_of(number)
        raise NotFound("host", state.hosts.names[host_rows[0]], message=f"the host is not in aggregate {uuid}")
    return tuple(_membership(state, row, state.membership.labels_of(row) - {number}) for row in inside)


def _membership(state: State, row: int, labels: frozenset[int]) -> PutMembership:
    # The write raises the provider's generation, so one of two concurrent changes is refused and planned again.
    return PutMembership(state.providers.ids[row], state.providers.generation.each[row], sorted(labels))


def _put(state: State, number: int, *, name: str, metadata: dict[str, str]) -> PutAggregate:
    uuid = uuid_bytes_of(state.aggregates.name_of(number), "aggregate")
    return PutAggregate(number, uuid, name, metadata, state.aggregate_versions[number] + 1)
