"""Claims and releases: consumers, their allocations, instances and places."""

from collections.abc import Mapping

from roost.model.writes import CLASS_BITS, CLASS_MASK, GENERATION_SLOT, Claim, Place, Refusal, Release
from roost.store.rules.footprint import Touched
from roost.store.rules.generations import raise_generation, slot_of
from roost.store.rules.row_cache import Holding, Seat, Shelves, Stock
from roost.store.rules.write_rule import WriteRule


def _touch_claim(touched: Touched, claim: Claim) -> None:
    for consumer in claim.consumers:
        touched.look("consumer", "id", consumer.id)
        touched.look("consumer", "uuid", consumer.uuid)
    for consumer_id in {take[0] for take in claim.takes}:
        touched.look("consumer", "id", consumer_id)
        touched.look("allocation", "consumer_id", consumer_id)
    for _, inventory_id, _ in claim.takes:
        touched.stock_ids.add(inventory_id)
        touched.stock_ids.add(slot_of(inventory_id >> CLASS_BITS))
    for instance in claim.instances:
        touched.look("consumer", "id", instance.consumer_id)
        touched.look("instance", "consumer_id", instance.consumer_id)
    for place in claim.places:
        touched.place_keys.add((place.group_id, place.scope))


def _touch_release(touched: Touched, release: Release) -> None:
    for consumer_id in release.consumer_ids:
        touched.look("consumer", "id", consumer_id)
        touched.look("allocation", "consumer_id", consumer_id)
        touched.look("instance", "consumer_id", consumer_id)
    touched.stock_ids.update(inventory_id for _, inventory_id, _ in release.frees)
    touched.stock_ids.update(map(slot_of, release.raised))
    for place in release.places:
        touched.place_keys.add((place.group_id, place.scope))


def _judge_claim(shelves: Shelves, claim: Claim) -> Refusal | None:
    for consumer in claim.consumers:
        if shelves.consumers.get(consumer.id) is not None or shelves.consumers.clashes(consumer):
            return Refusal("duplicate", "consumer", consumer.id)
        shelves.consumers.put(consumer)
    refusal = _takes(shelves, claim.takes)
    if refusal is not None:
        return refusal
    for instance in claim.instances:
        if shelves.consumers.get(instance.consumer_id) is None:
            return Refusal("missing", "consumer", instance.consumer_id)
        if shelves.instances.get(instance.consumer_id) is not None:
            return Refusal("duplicate", "instance", instance.consumer_id)
        shelves.instances.put(instance)
    for place in claim.places:
        refusal = _take_place(shelves, place)
        if refusal is not None:
            return refusal
    return None


def _takes(shelves: Shelves, takes: list[tuple[int, int, int]]) -> Refusal | None:
    held: dict[int, dict[int, int]] = {}
    for consumer_id, inventory_id, amount in takes:
        holding = held.get(consumer_id)
        if holding is None:
            if shelves.consumers.get(consumer_id) is None:
                return Refusal("missing", "consumer", consumer_id)
            before = shelves.holdings.get(consumer_id)
            holding = held[consumer_id] = {} if before is None else dict(before.takes)
        if inventory_id in holding:
            return Refusal("duplicate", "allocation", consumer_id)
        stock = shelves.stocks.get(inventory_id)
        refusal = _refusal_of(shelves, stock, (inventory_id, amount), held=held)
        if refusal is not None or stock is None:
            return refusal
        fuller = stock.with_used(stock.used + amount)
        if _is_overfull(shelves, fuller):
            return Refusal("capacity", "inventory", inventory_id)
        holding[inventory_id] = amount
        shelves.stocks.put(fuller)
    for consumer_id, holding in held.items():
        shelves.holdings.put(Holding(consumer_id, tuple(sorted(holding.items()))))
    for provider_id in {inventory_id >> CLASS_BITS for _, inventory_id, _ in takes}:
        raise_generation(shelves, provider_id)
    return None


def _refusal_of(
    shelves: Shelves, stock: Stock | None, take: tuple[int, int], *, held: Mapping[int, Mapping[int, int]]
) -> Refusal | None:
    """Return why an amount cannot be claimed from an inventory, regardless of its use; None: it can."""
    inventory_id, amount = take
    if stock is None or inventory_id & CLASS_MASK == GENERATION_SLOT:
        return Refusal("missing", "inventory", inventory_id)
    is_bad = amount < 1 or not stock.min_unit <= amount <= stock.max_unit or amount % stock.step_size != 0
    if is_bad and not _is_handed_on(shelves, take, held):
        return Refusal("units", "inventory", inventory_id)
    return None


def _is_handed_on(shelves: Shelves, take: tuple[int, int], held: Mapping[int, Mapping[int, int]]) -> bool:
    """Return whether the item releases just this amount and nobody claimed it since, so that the use never changes.

    Args:
        held: allocations of the claim being judged, which are not in the rows yet.
    """
    inventory_id, amount = take
    before = {number: shelves.holdings.get(number) for number in held} | shelves.holdings.previous_rows()
    given = sum(row is not None and take in row.takes for row in before.values())
    taken = 0
    for number in before:
        row = shelves.holdings.get(number)
        taken += held[number].get(inventory_id) == amount if number in held else row is not None and take in row.takes
    return taken < given


def _is_overfull(shelves: Shelves, stock: Stock) -> bool:
    """Return whether the use exceeds the capacity and rises with this item: an excess may shrink."""
    if stock.used <= (stock.total - stock.reserved) * stock.allocation_ratio:
        return False
    before = shelves.stocks.before(stock.id)
    return before is None or stock.used > before.used


def _take_place(shelves: Shelves, place: Place) -> Refusal | None:
    seat = shelves.seats.get((place.group_id, place.scope))
    members = 0 if seat is None else seat.members
    if seat is not None and members > 0 and seat.holder != place.holder:
        return Refusal("place", "place", place.group_id)
    if place.members < 1 or members + place.members > place.limit:
        return Refusal("place", "place", place.group_id)
    shelves.seats.put(Seat(place.group_id, place.scope, place.holder, members + place.members))
    return None


def _judge_release(shelves: Shelves, release: Release) -> Refusal | None:
    freed: dict[int, list[tuple[int, int]]] = {consumer_id: [] for consumer_id in release.consumer_ids}
    for consumer_id, inventory_id, amount in release.frees:
        freed.setdefault(consumer_id, []).append((inventory_id, amount))
    if len(freed) != len(release.consumer_ids):
        return Refusal("missing", "allocation", release.frees[0][0] if release.frees else 0)
    for consumer_id, takes in freed.items():
        if shelves.consumers.get(consumer_id) is None:
            return Refusal("missing", "consumer", consumer_id)
        holding = shelves.holdings.get(consumer_id)
        if tuple(sorted(takes)) != (() if holding is None else holding.takes):
            return Refusal("missing", "allocation", consumer_id)
        for inventory_id, amount in takes:
            stock = shelves.stocks.get(inventory_id)
            if stock is None:
                return Refusal("missing", "inventory", inventory_id)
            shelves.stocks.put(stock.with_used(stock.used - amount))
        shelves.holdings.drop(consumer_id)
        shelves.instances.drop(consumer_id)
        shelves.consumers.drop(consumer_id)
    for place in release.places:
        seat = shelves.seats.get((place.group_id, place.scope))
        if seat is None or seat.holder != place.holder or not 1 <= place.members <= seat.members:
            return Refusal("place", "place", place.group_id)
        shelves.seats.put(Seat(place.group_id, place.scope, place.holder, seat.members - place.members))
    for provider_id in release.raised:
        if shelves.stocks.get(slot_of(provider_id)) is None:
            return Refusal("missing", "provider", provider_id)
        raise_generation(shelves, provider_id)
    return None


RULES: Mapping[type, WriteRule] = {
    Claim: WriteRule(touch=_touch_claim, judge=_judge_claim),
    Release: WriteRule(touch=_touch_release, judge=_judge_release),
}
