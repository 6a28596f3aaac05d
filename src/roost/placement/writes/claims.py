"""Consumers take, replace and give back what they hold: what each act writes, planned on the columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from roost.engine.candidates.walk import Take
from roost.engine.columns.state import Holder, State
from roost.engine.feasibility.claim import ClaimRefusal, InventoryOverrides, check_claim, has_inventory
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.group import GUARDED_POLICIES
from roost.model.names import AMOUNT_MAX, uuid_text
from roost.model.writes import (
    CLASS_BITS,
    CLASS_MASK,
    Claim,
    ConsumerRow,
    InstanceRow,
    Place,
    PutSymbol,
    Release,
    ReuseSymbol,
    Write,
)
from roost.placement.current import Current

_TYPE = "consumer_type"
UNKNOWN_TYPE = "unknown"  # how a consumer without a type is shown


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a consumer is to hold, in place of all that it holds."""

    uuid: bytes  # 16 bytes
    amounts: Mapping[str, Mapping[str, float]]  # by the provider's uuid and the class, whole; none: the consumer ends
    project_id: str
    user_id: str
    consumer_type: str | None = None  # None: as it is
    # That the consumer has; None: there is no such consumer; UNSET: whatever it is.
    generation: float | msgspec.UnsetType | None = msgspec.UNSET


class Replacement(NamedTuple):
    """What becomes of some consumers: written in this order, with nothing between but inventories."""

    names: list[PutSymbol | ReuseSymbol]  # types that are new
    release: Release | None
    claim: Claim | None

    @property
    def writes(self) -> tuple[Write, ...]:
        """All of it."""
        return tuple(filter(None, (*self.names, self.release, self.claim)))


def replacement(current: Current, wishes: Sequence[Wish], *, unknown_class: str) -> Replacement:
    """Plan that consumers hold something else than before, all of them or none.

    Everything that they held is given back first. A plan never names the generation of a provider, so claims on
    the same one do not stand in each other's way.

    Args:
        wishes: each consumer once.
        unknown_class: what stands before the name of a class that is not there, when that is told.

    Raises:
        Conflict: a consumer has another generation, or something does not fit.
        BadRequest: a provider or class is not there.
    """
    return move(current, wishes, find_holders(current.state, wishes), unknown_class=unknown_class)


def find_holders(state: State, wishes: Sequence[Wish]) -> list[Holder | None]:
    """Return the consumers that wishes are about; None: one that holds nothing yet.

    Raises:
        Conflict: a consumer has another generation than its wish says.
        BadRequest: a provider is not there.
    """
    holders = [state.holders.get(wish.uuid) for wish in wishes]
    for wish, holder in zip(wishes, holders, strict=True):
        expected = None if holder is None else holder.generation
        if wish.generation is not msgspec.UNSET and wish.generation != expected:
            said = "null" if expected is None else expected
            raise Conflict(
                f"consumer generation conflict - expected {said} but got {wish.generation}",
                code="placement.concurrent_update",
            )
    for wish in wishes:
        for uuid in wish.amounts:
            if uuid not in state.providers.row_of_uuid:
                raise BadRequest(f"Allocation for resource provider '{uuid}' that does not exist.")
    return holders


def move(
    current: Current,
    wishes: Sequence[Wish],
    holders: Sequence[Holder | None],
    *,
    unknown_class: str,
    instead: InventoryOverrides | None = None,
) -> Replacement:
    """Plan the same of consumers that are known.

    Args:
        holders: as ``known`` gives them.
        instead: inventories that are written before the claim, in place of those in the columns.
    """
    state = current.state
    takes = [_takes(state, wish, unknown_class) for wish in wishes]
    ending = [holder for holder in holders if holder is not None]
    refusal = check_claim(
        state, (take for each in takes for take in each), frees=_takes_of(state, ending), instead=instead
    )
    if refusal is not None:
        # What somebody held who ends counts as named too.
        named = [each or _takes_of(state, filter(None, [holder])) for each, holder in zip(takes, holders, strict=True)]
        raise _describe_refusal(state, refusal, [take for each in named for take in each], instead=instead)
    names = _new_types(current, wishes)
    claim = _claim(current, zip(wishes, holders, takes, strict=True), names)
    raised = _find_emptied_providers(wishes, holders, claim)
    return Replacement(names, release_of(state, ending, raised=raised) if ending else None, claim)


def end(state: State, uuid: str) -> Release:
    """Plan that a consumer gives back all it holds.

    Raises:
        NotFound: it holds nothing.
    """
    holder = holder_of(state, uuid)
    if holder is None:
        raise NotFound("consumer", uuid, message=f"No allocations for consumer '{uuid}'")
    return release_of(state, [holder])


def holder_of(state: State, uuid: str) -> Holder | None:
    """Return a consumer, by its uuid in the spelling that is shown; None: it holds nothing."""
    try:
        holder = state.holders.get(bytes.fromhex(uuid.replace("-", "")))
    except ValueError:
        return None
    return holder if holder is not None and uuid_text(holder.uuid) == uuid else None


def release_of(state: State, holders: Iterable[Holder], *, raised: Iterable[int] = ()) -> Release:
    """Return what is given back when consumers end, with the places of their instances in server groups.

    Args:
        raised: identities of providers whose generation rises.
    """
    ids, frees, places = [], [], []
    for holder in holders:
        ids.append(holder.id)
        frees += [(holder.id, inventory_id, amount) for inventory_id, amount in holder.takes]
        places += places_of(state, holder.instance or holder.kept)
    return Release(ids, frees, places, sorted(raised))


def plan_release(state: State, uuids: Iterable[bytes]) -> tuple[Release, ...]:
    """Return what gives back all that some consumers hold, if one of them holds anything."""
    holders = [state.holders[uuid] for uuid in uuids if uuid in state.holders]
    return (release_of(state, holders),) if holders else ()


def claim_of(holder: Holder, places: list[Place]) -> Claim:
    """Return what a consumer holds as the claim by which it would come to hold it.

    Args:
        places: those of its instance, as its release has them.
    """
    consumer = ConsumerRow(holder.id, holder.uuid, holder.project_id, holder.user_id, holder.type_id, holder.generation)
    takes = [(holder.id, inventory_id, amount) for inventory_id, amount in holder.takes]
    row = holder.instance or holder.kept
    return Claim([consumer], takes, [] if row is None else [row], places)


def type_name(state: State, holder: Holder) -> str:
    """Return the type of a consumer as it is shown."""
    return state.consumer_types.name_of(holder.type_id) if holder.type_id else UNKNOWN_TYPE


def _takes(state: State, wish: Wish, unknown_class: str) -> list[Take]:
    row_of_uuid, id_of = state.providers.row_of_uuid, state.class_ids.id_of
    takes: list[Take] = []
    for uuid, amounts in wish.amounts.items():
        row = row_of_uuid[uuid]
        for name, amount in amounts.items():
            class_id = id_of(name)
            if class_id is None:
                raise unknown(unknown_class, name)
            takes.append((row, class_id, int(amount)))
    return takes


def unknown(before: str, name: str) -> BadRequest:
    """Return what is said of a resource class that is not there."""
    return BadRequest(f"{before}No such resource class {name}.")


def _takes_of(state: State, holders: Iterable[Holder]) -> list[Take]:
    row_of_id = state.providers.row_of_id
    return [
        (row_of_id[inventory_id >> CLASS_BITS], inventory_id & CLASS_MASK, amount)
        for holder in holders
        for inventory_id, amount in holder.takes
    ]


def _describe_refusal(
    state: State, refusal: ClaimRefusal, named: Sequence[Take], *, instead: InventoryOverrides | None
) -> Conflict:
    """Return a refusal as the field tells it: providers without any of the classes asked come first of all."""
    uuids, name_of = state.providers.uuids, state.class_ids.name_of
    # In the order of a set of numbers that begin with 0, as clients of this field know it.
    numbers = [number + 1 for number in {class_id - 1 for _, class_id, _ in named}]
    bare = [
        row
        for row in dict.fromkeys(row for row, _, _ in named)
        if not any(has_inventory(state, row, number, instead=instead) for number in numbers)
    ]
    if bare:
        return _without(", ".join(map(name_of, numbers)), ", ".join(uuids[row] for row in bare))
    name, uuid = name_of(refusal.class_id), uuids[refusal.row]
    if refusal.reason == "missing":
        return _without(name, uuid)
    problem = "exceed the capacity" if refusal.reason == "capacity" else "violate inventory constraints"
    return Conflict(
        f"Unable to allocate inventory: Unable to create allocation for '{name}' on resource provider '{uuid}'. "
        f"The requested amount would {problem}."
    )


def _without(classes: str, providers: str) -> Conflict:
    return Conflict(
        f"Unable to allocate inventory: Inventory for '{classes}' on resource provider '{providers}' invalid."
    )


def _new_types(current: Current, wishes: Sequence[Wish]) -> list[PutSymbol | ReuseSymbol]:
    missing = current.state.consumer_types.find_missing(
        wish.consumer_type for wish in wishes if wish.consumer_type is not None and wish.amounts
    )
    return [current.new_symbol(_TYPE, name) for name in missing]


def _claim(
    current: Current, wanted: Iterable[tuple[Wish, Holder | None, list[Take]]], names: Sequence[PutSymbol | ReuseSymbol]
) -> Claim | None:
    state = current.state
    ids, new_types = state.providers.ids, {write.name: write.id for write in names}
    consumers: list[ConsumerRow] = []
    taken: list[tuple[int, int, int]] = []
    instances: list[InstanceRow] = []
    places: list[Place] = []
    for wish, holder, takes in wanted:
        if not takes:
            continue
        consumer_id, generation, type_id = current.new_id("consumer"), 1, 0
        if holder is not None:
            generation, type_id = holder.generation + 1, holder.type_id
            row = holder.instance or holder.kept
            places += places_of(state, row)
            if row is not None:
                instances.append(msgspec.structs.replace(row, consumer_id=consumer_id))
        if wish.consumer_type is not None:
            type_id = state.consumer_types.id_of(wish.consumer_type) or new_types[wish.consumer_type]
        consumers.append(ConsumerRow(consumer_id, wish.uuid, wish.project_id, wish.user_id, type_id, generation))
        taken += [(consumer_id, ids[row] << CLASS_BITS | class_id, amount) for row, class_id, amount in takes]
    return Claim(consumers, taken, instances, places) if consumers else None


def places_of(state: State, instance: InstanceRow | None) -> list[Place]:
    """Return the place of an instance in its server group; who has one already meets no bound on it."""
    group = None if instance is None else state.groups.get(instance.group_id)
    if instance is None or group is None or group.policy not in GUARDED_POLICIES:
        return []
    return [Place(group.id, instance.scope, instance.holder, 1, AMOUNT_MAX)]


def _find_emptied_providers(wishes: Sequence[Wish], holders: Sequence[Holder | None], claim: Claim | None) -> set[int]:
    """Return the providers whose generation rises because a consumer was left with nothing; claims raise their own."""
    left = {
        inventory_id >> CLASS_BITS
        for wish, holder in zip(wishes, holders, strict=True)
        if holder is not None and not wish.amounts
        for inventory_id, _ in holder.takes
    }
    return left if claim is None else left - {inventory_id >> CLASS_BITS for _, inventory_id, _ in claim.takes}
