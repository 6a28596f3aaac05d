"""Traits and aggregates of providers: the writes that change them."""

from collections.abc import Sequence

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict
from roost.model.names import uuid_bytes
from roost.model.writes import PutAggregate, PutMembership, PutTraits, Write
from roost.placement.current import Current


def traits_of(state: State, row: int) -> list[str]:
    """Return the traits of a provider in the order of their creation."""
    return [state.trait_ids.name_of(number) for number in sorted(state.traits.labels_of(row))]


def plan_traits(state: State, row: int, *, names: Sequence[str], generation: int) -> tuple[Write, ...]:
    """Plan the traits of a provider; if they are unchanged, write nothing and keep its generation.

    Args:
        generation: of the provider, as the client knows it.

    Raises:
        Conflict: the provider has another generation.
        BadRequest: a trait does not exist.
    """
    _check_generation(state, row, generation)
    missing = state.trait_ids.find_missing(names)
    if missing:
        raise BadRequest(f"No such trait {', '.join(missing)}")
    return _plan_traits(state, row, {number for name in names if (number := state.trait_ids.id_of(name)) is not None})


def plan_trait_removal(state: State, row: int) -> tuple[Write, ...]:
    """Plan the removal of all traits of a provider; if it has none, write nothing."""
    return _plan_traits(state, row, set())


def _plan_traits(state: State, row: int, numbers: set[int]) -> tuple[Write, ...]:
    if numbers == state.traits.labels_of(row):
        return ()
    return (PutTraits(state.providers.ids[row], state.providers.generation.each[row], sorted(numbers)),)


def aggregates_of(state: State, row: int) -> list[str]:
    """Return the aggregates of a provider in the order of their creation."""
    return [state.aggregates.name_of(number) for number in sorted(state.membership.labels_of(row))]


def plan_aggregates(current: Current, row: int, *, uuids: Sequence[str], generation: int | None) -> tuple[Write, ...]:
    """Plan the aggregates of a provider; create missing ones.

    Args:
        uuids: in the stored spelling, without repetition.
        generation: of the provider, as the client knows it; None: do not check it, and do not raise it.

    Raises:
        Conflict: the provider has another generation.
    """
    state = current.state
    if generation is not None:
        _check_generation(state, row, generation)
    writes: list[Write] = []
    numbers = []
    for uuid in uuids:
        number = state.aggregates.id_of(uuid)
        if number is None:
            body = uuid_bytes(uuid)
            assert body is not None, uuid
            number = current.new_id("aggregate")
            writes.append(PutAggregate(number, body, "", {}, 0))
        numbers.append(number)
    stored_generation = state.providers.generation.each[row]
    writes.append(
        PutMembership(state.providers.ids[row], stored_generation, sorted(numbers), raises=generation is not None)
    )
    return tuple(writes)


def _check_generation(state: State, row: int, generation: int) -> None:
    if generation != state.providers.generation.each[row]:
        raise Conflict(
            "Resource provider's generation already changed. Please update the generation and try again.",
            code="placement.concurrent_update",
        )
