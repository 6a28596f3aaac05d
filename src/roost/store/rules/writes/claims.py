"""Claims and releases: consumers, their allocations, instances and places."""

from collections.abc import Mapping

from roost.model.writes import CLASS_BITS, CLASS_MASK, GENERATION_SLOT, Claim, Place, Refusal, Release
from roost.store.rules.footprint import Footprint
from roost.store.rules.generations import raise_generation, slot_of
from roost.store.rules.row_cache import Holding, RowCache, Seat, Stock
from roost.store.rules.write_rule import WriteRule


def _collect_claim(footprint: Footprint, claim: Claim) -> None:
    for consumer in claim.consumers:
        footprint.add("consumer", "id", consumer.id)
        footprint.add("consumer", "uuid", consumer.uuid)
    for consumer_id in {take[0] for take in claim.takes}:
        footprint.add("consumer", "id", consumer_id)
        footprint.add("allocation", "consumer_id", consumer_id)
    for _, inventory_id, _ in claim.takes:
        footprint.stock_ids.add(inventory_id)
        footprint.stock_ids.add(slot_of(inventory_id >> CLASS_BITS))
    for instance in claim.instances:
        footprint.add("consumer", "id", instance.consumer_id)
        footprint.add("instance", "consumer_id", instance.consumer_id)
    for place in claim.places:
        footprint.place_keys.add((place.group_id, place.scope))
    for group_id in claim.group_ids:
        footprint.joined_groups.add(group_id)
        footprint.add("server_group", "id", group_id)


def _collect_release(footprint: Footprint, release: Release) -> None:
    for consumer_id in release.consumer_ids:
        footprint.add("consumer", "id", consumer_id)
        footprint.add("allocation", "consumer_id", consumer_id)
        footprint.add("instance", "consumer_id", consumer_id)
    footprint.stock_ids.update(inventory_id for _, inventory_id, _ in release.frees)
    footprint.stock_ids.update(map(slot_of, release.raised))
    for place in release.places:
        footprint.place_keys.add((place.group_id, place.scope))


def _judge_claim(cache: RowCache, claim: Claim) -> Refusal | None:
    for consumer in claim.consumers:
        if cache.consumers.get(consumer.id) is not None or cache.consumers.clashes(consumer):
            return Refusal("duplicate", "consumer", consumer.id)
        cache.consumers.put(consumer)
    refusal = _claim_amounts(cache, claim.takes)
    if refusal is not None:
        return refusal
    for group_id in sorted(claim.group_ids):
        if cache.groups.get(group_id) is None:
            return Refusal("missing", "server_group", group_id)
    for instance in claim.instances:
        if cache.consumers.get(instance.consumer_id) is None:
            return Refusal("missing", "consumer", instance.consumer_id)
        if cache.instances.get(instance.consumer_id) is not None:
            return Refusal("duplicate", "instance", instance.consumer_id)
        cache.instances.put(instance)
    for place in claim.places:
        refusal = _take_place(cache, place)
        if refusal is not None:
            return refusal
    return None


def _claim_amounts(cache: RowCache, takes: list[tuple[int, int, int]]) -> Refusal | None:
    held: dict[int, dict[int, int]] = {}
    for consumer_id, inventory_id, amount in takes:
        holding = held.get(consumer_id)
        if holding is None:
            if cache.consumers.get(consumer_id) is None:
                return Refusal("missing", "consumer", consumer_id)
            before = cache.holdings.get(consumer_id)
            holding = held[consumer_id] = {} if before is None else dict(before.takes)
        if inventory_id in holding:
            return Refusal("duplicate", "allocation", consumer_id)
        stock = cache.stocks.get(inventory_id)
        refusal = _check_amount(cache, stock, (inventory_id, amount), held=held)
        if refusal is not None or stock is None:
            return refusal
        fuller = stock.with_used(stock.used + amount)
        if _is_overfull(cache, fuller):
            return Refusal("capacity", "inventory", inventory_id)
        holding[inventory_id] = amount
        cache.stocks.put(fuller)
    for consumer_id, holding in held.items():
        cache.holdings.put(Holding(consumer_id, tuple(sorted(holding.items()))))
    for provider_id in {inventory_id >> CLASS_BITS for _, inventory_id, _ in takes}:
        raise_generation(cache, provider_id)
    return None


def _check_amount(
    cache: RowCache, stock: Stock | None, take: tuple[int, int], *, held: Mapping[int, Mapping[int, int]]
) -> Refusal | None:
    """Refuse an amount without an inventory, or outside its unit bounds. The capacity is checked elsewhere."""
    inventory_id, amount = take
    if stock is None or inventory_id & CLASS_MASK == GENERATION_SLOT:
        return Refusal("missing", "inventory", inventory_id)
    breaks_units = amount < 1 or not stock.min_unit <= amount <= stock.max_unit or amount % stock.step_size != 0
    if breaks_units and not _is_transferred(cache, take, held):
        return Refusal("units", "inventory", inventory_id)
    return None


def _is_transferred(cache: RowCache, take: tuple[int, int], held: Mapping[int, Mapping[int, int]]) -> bool:
    """Return whether an amount only moves: the item released an equal amount, and has not claimed it again yet.

    Args:
        held: allocations of the claim being judged, which are not in the rows yet.
    """
    inventory_id, amount = take
    before = {number: cache.holdings.get(number) for number in held} | cache.holdings.previous_rows()
    released = sum(row is not None and take in row.takes for row in before.values())
    claimed = 0
    for number in before:
        row = cache.holdings.get(number)
        claimed += held[number].get(inventory_id) == amount if number in held else row is not None and take in row.takes
    return claimed < released


def _is_overfull(cache: RowCache, stock: Stock) -> bool:
    """Return whether the use exceeds the capacity and rises with this item; an existing excess may shrink."""
    if stock.used <= (stock.total - stock.reserved) * stock.allocation_ratio:
        return False
    before = cache.stocks.previous_row(stock.id)
    return before is None or stock.used > before.used


def _take_place(cache: RowCache, place: Place) -> Refusal | None:
    seat = cache.seats.get((place.group_id, place.scope))
    members = 0 if seat is None else seat.members
    if seat is not None and members > 0 and seat.holder != place.holder:
        return Refusal("place", "place", place.group_id)
    if place.members < 1 or members + place.members > place.limit:
        return Refusal("place", "place", place.group_id)
    cache.seats.put(Seat(place.group_id, place.scope, place.holder, members + place.members))
    return None


def _judge_release(cache: RowCache, release: Release) -> Refusal | None:
    freed: dict[int, list[tuple[int, int]]] = {consumer_id: [] for consumer_id in release.consumer_ids}
    for consumer_id, inventory_id, amount in release.frees:
        freed.setdefault(consumer_id, []).append((inventory_id, amount))
    if len(freed) != len(release.consumer_ids):
        return Refusal("missing", "allocation", release.frees[0][0] if release.frees else 0)
    for consumer_id, takes in freed.items():
        if cache.consumers.get(consumer_id) is None:
            return Refusal("missing", "consumer", consumer_id)
        holding = cache.holdings.get(consumer_id)
        if tuple(sorted(takes)) != (() if holding is None else holding.takes):
            return Refusal("missing", "allocation", consumer_id)
        for inventory_id, amount in takes:
            stock = cache.stocks.get(inventory_id)
            if stock is None:
                return Refusal("missing", "inventory", inventory_id)
            cache.stocks.put(stock.with_used(stock.used - amount))
        cache.holdings.drop(consumer_id)
        cache.instances.drop(consumer_id)
        cache.consumers.drop(consumer_id)
    for place in release.places:
        seat = cache.seats.get((place.group_id, place.scope))
        if seat is None or seat.holder != place.holder or not 1 <= place.members <= seat.members:
            return Refusal("place", "place", place.group_id)
        cache.seats.put(Seat(place.group_id, place.scope, place.holder, seat.members - place.members))
    for provider_id in release.raised:
        if cache.stocks.get(slot_of(provider_id)) is None:
            return Refusal("missing", "provider", provider_id)
        raise_generation(cache, provider_id)
    return None


RULES: Mapping[type, WriteRule] = {
    Claim: WriteRule(collect=_collect_claim, judge=_judge_claim),
    Release: WriteRule(collect=_collect_release, judge=_judge_release),
}
