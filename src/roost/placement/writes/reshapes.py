"""Reshapes: inventories that move between providers together with their allocations."""

from collections.abc import Mapping, Sequence

import msgspec

from roost.engine.columns.state import State
from roost.errors import BadRequest, Conflict
from roost.model.writes import CLASS_BITS, InventoryRow, PutInventories, Write
from roost.placement.current import Current
from roost.placement.writes import inventories
from roost.placement.writes.claims import ConsumerSpec, Replacement, find_holders, move, unknown_class_error

_MALFORMED = "malformed reshaper data: "


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The new inventories of a provider."""

    uuid: str
    generation: float  # of the provider
    inventories: Mapping[str, Mapping[str, float]]  # by class: fields of the Placement API, at least ``total``


class _Planned(msgspec.Struct, frozen=True):
    """An offer with rows and numbers in place of uuids and names."""

    row: int
    provider_id: int
    before: dict[int, InventoryRow]  # by class
    after: dict[int, InventoryRow]


def reshape(current: Current, offers: Sequence[Offer], specs: Sequence[ConsumerSpec]) -> tuple[Write, ...]:
    """Plan new inventories of providers and new allocations of consumers, all or nothing.

    The writes first add the new inventories to the old ones, then move the allocations, then delete old inventories.
    So no allocation is ever without its inventory.

    Args:
        offers: one per provider.
        specs: one per consumer.

    Raises:
        BadRequest: a provider or a class does not exist, or an inventory is invalid.
        Conflict: a provider or a consumer has another generation, an amount does not fit, or an inventory to
            delete is still in use.
    """
    state = current.state
    rows = [_row_of(state, offer) for offer in offers]
    holders = find_holders(state, specs)
    planned = [_plan_offer(state, offer, row) for offer, row in zip(offers, rows, strict=True)]
    instead = {(each.row, class_id): inventory for each in planned for class_id, inventory in each.after.items()}
    moved = move(current, specs, holders, unknown_class=_MALFORMED, instead=instead)
    for each in planned:
        _check_use(state, each, moved)
    generation = state.providers.generation.each
    raised = set() if moved.release is None else set(moved.release.raised)
    if moved.claim is not None:
        raised |= {inventory_id >> CLASS_BITS for _, inventory_id, _ in moved.claim.takes}
    interim, final = [], []
    for each in planned:
        expected = generation[each.row]
        if each.after:
            both = each.before | each.after
            interim.append(PutInventories(each.provider_id, expected, list(both.values())))
            expected += 1
        expected += each.provider_id in raised
        final.append(PutInventories(each.provider_id, expected, list(each.after.values())))
    return (*interim, *moved.writes, *final)


def _row_of(state: State, offer: Offer) -> int:
    row = state.providers.row_of_uuid.get(offer.uuid)
    if row is None:
        raise BadRequest(
            f"Resource provider {offer.uuid} in inventories not found: "
            f"No resource provider with uuid {offer.uuid} found",
            code="placement.resource_provider.not_found",
        )
    actual = state.providers.generation.each[row]
    if offer.generation != actual:
        raise Conflict(
            f"resource provider generation conflict for provider {offer.uuid}: "
            f"actual: {actual}, given: {offer.generation}",
            code="placement.concurrent_update",
        )
    return row


def _plan_offer(state: State, offer: Offer, row: int) -> _Planned:
    after = {}
    for name, record in offer.inventories.items():
        class_id = state.class_ids.id_of(name)
        if class_id is None:
            raise unknown_class_error(_MALFORMED, name)
        inventory = inventories.inventory_of(
            record, resource_class=name, provider_uuid=offer.uuid, may_reserve_all=True, act="update"
        )
        after[class_id] = inventories.row_of(class_id, inventory)
    before = {each.class_id: each for each in inventories.rows_of(state, row)}
    return _Planned(row, state.providers.ids[row], before, after)


def _check_use(state: State, planned: _Planned, moved: Replacement) -> None:
    """Refuse the deletion of inventories that would still be in use afterwards."""
    first = planned.provider_id << CLASS_BITS
    removed = {first | class_id: class_id for class_id in planned.before if class_id not in planned.after}
    used = {inventory_id: state.classes[class_id].used.each[planned.row] for inventory_id, class_id in removed.items()}
    for _, inventory_id, amount in [] if moved.release is None else moved.release.frees:
        if inventory_id in used:
            used[inventory_id] -= amount
    for _, inventory_id, amount in [] if moved.claim is None else moved.claim.takes:
        if inventory_id in used:
            used[inventory_id] += amount
    names = [state.class_ids.name_of(removed[inventory_id]) for inventory_id in sorted(used) if used[inventory_id] > 0]
    if names:
        raise Conflict(
            f"update conflict: Inventory for '{', '.join(names)}' on resource provider "
            f"'{state.providers.uuids[planned.row]}' in use.",
            code="placement.inventory.inuse",
        )
