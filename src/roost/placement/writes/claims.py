"""Allocations of consumers: the writes that create, replace and release them."""

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
UNKNOWN_TYPE = "unknown"  # shown type of a consumer without one


class ConsumerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The new allocations of a consumer, in place of all its present ones."""

    uuid: bytes  # 16 bytes
    amounts: Mapping[str, Mapping[str, float]]  # by provider uuid and class, whole numbers; empty: release the consumer
    project_id: str
    user_id: str
    consumer_type: str | None = None  # None: unchanged
    # Known generation of the consumer; None: it must not exist; UNSET: any.
    generation: float | msgspec.UnsetType | None = msgspec.UNSET


class Replacement(NamedTuple):
    """The writes that replace allocations of consumers, in this order; only inventories may be written between them."""

    names: list[PutSymbol | ReuseSymbol]  # new consumer types
    release: Release | None
    claim: Claim | None

    @property
    def writes(self) -> tuple[Write, ...]:
        """All writes."""
        return tuple(filter(None, (*self.names, self.release, self.claim)))


def plan_replacement(current: Current, specs: Sequence[ConsumerSpec], *, unknown_class: str) -> Replacement:
    """Plan new allocations for consumers, all or nothing.

    All previous allocations are released first. A plan never checks the generation of a provider, so claims on one
    provider do not conflict.

    Args:
        specs: one per consumer.
        unknown_class: prefix of the error for an unknown class.

    Raises:
        Conflict: a consumer has another generation, or an amount does not fit.
        BadRequest: a provider or class does not exist.
    """
    return move(current, specs, find_holders(current.state, specs), unknown_class=unknown_class)


def find_holders(state: State, specs: Sequence[ConsumerSpec]) -> list[Holder | None]:
    """Return the consumers of some specs; None for one without allocations.

    Raises:
        Conflict: the generation of a consumer differs from its spec.
        BadRequest: a provider does not exist.
    """
    holders = [state.holders.get(spec.uuid) for spec in specs]
    for spec, holder in zip(specs, holders, strict=True):
        expected = None if holder is None else holder.generation
        if spec.generation is not msgspec.UNSET and spec.generation != expected:
            shown = "null" if expected is None else expected
            raise Conflict(
                f"consumer generation conflict - expected {shown} but got {spec.generation}",
                code="placement.concurrent_update",
            )
    for spec in specs:
        for uuid in spec.amounts:
            if uuid not in state.providers.row_of_uuid:
                raise BadRequest(f"Allocation for resource provider '{uuid}' that does not exist.")
    return holders


def move(
    current: Current,
    specs: Sequence[ConsumerSpec],
    holders: Sequence[Holder | None],
    *,
    unknown_class: str,
    instead: InventoryOverrides | None = None,
) -> Replacement:
    """Plan new allocations for consumers that were looked up.

    Args:
        holders: from ``find_holders``.
        instead: inventories written before the claim, in place of those in the columns.
    """
    state = current.state
    takes = [_takes(state, spec, unknown_class) for spec in specs]
    ending = [holder for holder in holders if holder is not None]
    refusal = check_claim(
        state, (take for each in takes for take in each), frees=_takes_of(state, ending), overrides=instead
    )
    if refusal is not None:
        # The previous allocations of a released consumer count as requested.
        requested = [
            each or _takes_of(state, filter(None, [holder])) for each, holder in zip(takes, holders, strict=True)
        ]
        raise _describe_refusal(state, refusal, [take for each in requested for take in each], instead=instead)
    names = _new_types(current, specs)
    claim = _claim(current, zip(specs, holders, takes, strict=True), names)
    raised = _find_emptied_providers(specs, holders, claim)
    return Replacement(names, release_of(state, ending, raised=raised) if ending else None, claim)


def plan_end(state: State, uuid: str) -> Release:
    """Plan the release of a consumer.

    Raises:
        NotFound: it has no allocations.
    """
    holder = holder_of(state, uuid)
    if holder is None:
        raise NotFound("consumer", uuid, message=f"No allocations for consumer '{uuid}'")
    return release_of(state, [holder])


def holder_of(state: State, uuid: str) -> Holder | None:
    """Return the consumer of a uuid in canonical spelling; None: the consumer has no allocations."""
    try:
        holder = state.holders.get(bytes.fromhex(uuid.replace("-", "")))
    except ValueError:
        return None
    return holder if holder is not None and uuid_text(holder.uuid) == uuid else None


def release_of(state: State, holders: Iterable[Holder], *, raised: Iterable[int] = ()) -> Release:
    """Return the release of consumers, including the places of their instances in server groups.

    Args:
        raised: ids of providers whose generation rises.
    """
    ids, frees, places = [], [], []
    for holder in holders:
        ids.append(holder.id)
        frees += [(holder.id, inventory_id, amount) for inventory_id, amount in holder.takes]
        places += places_of(state, holder.instance or holder.kept)
    return Release(ids, frees, places, sorted(raised))


def plan_release(state: State, uuids: Iterable[bytes]) -> tuple[Release, ...]:
    """Return the release of all allocations of some consumers, if there are any."""
    holders = [state.holders[uuid] for uuid in uuids if uuid in state.holders]
    return (release_of(state, holders),) if holders else ()


def claim_of(holder: Holder, places: list[Place]) -> Claim:
    """Return the allocations of a consumer as a claim.

    Args:
        places: those of its instance, as in its release.
    """
    consumer = ConsumerRow(holder.id, holder.uuid, holder.project_id, holder.user_id, holder.type_id, holder.generation)
    takes = [(holder.id, inventory_id, amount) for inventory_id, amount in holder.takes]
    row = holder.instance or holder.kept
    return Claim([consumer], takes, [] if row is None else [row], places)


def type_name(state: State, holder: Holder) -> str:
    """Return the shown type of a consumer."""
    return state.consumer_types.name_of(holder.type_id) if holder.type_id else UNKNOWN_TYPE


def _takes(state: State, spec: ConsumerSpec, unknown_class: str) -> list[Take]:
    row_of_uuid, id_of = state.providers.row_of_uuid, state.class_ids.id_of
    takes: list[Take] = []
    for uuid, amounts in spec.amounts.items():
        row = row_of_uuid[uuid]
        for name, amount in amounts.items():
            class_id = id_of(name)
            if class_id is None:
                raise unknown_class_error(unknown_class, name)
            takes.append((row, class_id, int(amount)))
    return takes


def unknown_class_error(prefix: str, name: str) -> BadRequest:
    """Return the error for an unknown resource class."""
    return BadRequest(f"{prefix}No such resource class {name}.")


def _takes_of(state: State, holders: Iterable[Holder]) -> list[Take]:
    row_of_id = state.providers.row_of_id
    return [
        (row_of_id[inventory_id >> CLASS_BITS], inventory_id & CLASS_MASK, amount)
        for holder in holders
        for inventory_id, amount in holder.takes
    ]


def _describe_refusal(
    state: State, refusal: ClaimRefusal, requested: Sequence[Take], *, instead: InventoryOverrides | None
) -> Conflict:
    """Return the error of a refusal; providers with none of the requested classes have precedence, as upstream."""
    uuids, name_of = state.providers.uuids, state.class_ids.name_of
    # In the order of a Python set of small numbers, as in the messages of OpenStack Placement.
    numbers = [number + 1 for number in {class_id - 1 for _, class_id, _ in requested}]
    bare = [
        row
        for row in dict.fromkeys(row for row, _, _ in requested)
        if not any(has_inventory(state, row, number, overrides=instead) for number in numbers)
    ]
    if bare:
        return _invalid_inventory(", ".join(map(name_of, numbers)), ", ".join(uuids[row] for row in bare))
    name, uuid = name_of(refusal.class_id), uuids[refusal.row]
    if refusal.reason == "missing":
        return _invalid_inventory(name, uuid)
    problem = "exceed the capacity" if refusal.reason == "capacity" else "violate inventory constraints"
    return Conflict(
        f"Unable to allocate inventory: Unable to create allocation for '{name}' on resource provider '{uuid}'. "
        f"The requested amount would {problem}."
    )


def _invalid_inventory(classes: str, providers: str) -> Conflict:
    return Conflict(
        f"Unable to allocate inventory: Inventory for '{classes}' on resource provider '{providers}' invalid."
    )


def _new_types(current: Current, specs: Sequence[ConsumerSpec]) -> list[PutSymbol | ReuseSymbol]:
    missing = current.state.consumer_types.find_missing(
        spec.consumer_type for spec in specs if spec.consumer_type is not None and spec.amounts
    )
    return [current.new_symbol(_TYPE, name) for name in missing]


def _claim(
    current: Current,
    planned: Iterable[tuple[ConsumerSpec, Holder | None, list[Take]]],
    names: Sequence[PutSymbol | ReuseSymbol],
) -> Claim | None:
    state = current.state
    ids, new_types = state.providers.ids, {write.name: write.id for write in names}
    consumers: list[ConsumerRow] = []
    taken: list[tuple[int, int, int]] = []
    instances: list[InstanceRow] = []
    places: list[Place] = []
    for spec, holder, takes in planned:
        if not takes:
            continue
        consumer_id, generation, type_id = current.new_id("consumer"), 1, 0
        if holder is not None:
            generation, type_id = holder.generation + 1, holder.type_id
            row = holder.instance or holder.kept
            places += places_of(state, row)
            if row is not None:
                instances.append(msgspec.structs.replace(row, consumer_id=consumer_id))
        if spec.consumer_type is not None:
            type_id = state.consumer_types.id_of(spec.consumer_type) or new_types[spec.consumer_type]
        consumers.append(ConsumerRow(consumer_id, spec.uuid, spec.project_id, spec.user_id, type_id, generation))
        taken += [(consumer_id, ids[row] << CLASS_BITS | class_id, amount) for row, class_id, amount in takes]
    return Claim(consumers, taken, instances, places) if consumers else None


def places_of(state: State, instance: InstanceRow | None) -> list[Place]:
    """Return the place of an instance in its server group; the group's limit does not apply to an existing member."""
    group = None if instance is None else state.groups.get(instance.group_id)
    if instance is None or group is None or group.policy not in GUARDED_POLICIES:
        return []
    return [Place(group.id, instance.scope, instance.holder, 1, AMOUNT_MAX)]


def _find_emptied_providers(
    specs: Sequence[ConsumerSpec], holders: Sequence[Holder | None], claim: Claim | None
) -> set[int]:
    """Return the ids of providers with released amounts and no new claim; the release raises their generations."""
    emptied = {
        inventory_id >> CLASS_BITS
        for spec, holder in zip(specs, holders, strict=True)
        if holder is not None and not spec.amounts
        for inventory_id, _ in holder.takes
    }
    return emptied if claim is None else emptied - {inventory_id >> CLASS_BITS for _, inventory_id, _ in claim.takes}
