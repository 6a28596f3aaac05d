"""The verdict on one item in plain Python: the reference for the statements of every store."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from roost.model.names import uuid_text
from roost.model.work.work_rows import Put
from roost.model.writes import (
    CLASS_BITS,
    CLASS_MASK,
    GENERATION_SLOT,
    Claim,
    DropProvider,
    DropSymbol,
    InventoryRow,
    Item,
    Place,
    PutAggregate,
    PutDocument,
    PutGroup,
    PutHost,
    PutInventories,
    PutMembership,
    PutProvider,
    PutSymbol,
    PutTask,
    PutTraits,
    RaiseGeneration,
    Refusal,
    Release,
    RenameSymbol,
    ReuseSymbol,
    Write,
)
from roost.store.rules.row_cache import Holding, Labels, Seat, Shelves, Stock
from roost.store.rules.schema import WORK, Table

# Prefix of the kind of a dropped symbol. Its row stays, so that its number is not reused soon, and a process that still
# uses it is refused.
DROPPED = "dropped "


def tombstone_of(write: DropSymbol) -> PutSymbol:
    """Return the row of a dropped number; its name is the time of the deletion."""
    since = f" {int(write.at_s)}" if write.at_s else ""
    return PutSymbol(DROPPED + write.kind, write.id, f"{write.id}{since}")


def judge(shelves: Shelves, item: Item) -> Refusal | None:
    """Apply an item if every write of it is valid; else return the reason, and leave the rows unchanged.

    Args:
        shelves: the rows, at least those that ``footprint.find_touched`` returns for this item.
        item: judged write by write, each after the effect of those before.

    Returns:
        None if the item is applied.
    """
    refusal = _judge_writes(shelves, item.writes) or _judge_trees(shelves, item.writes)
    if refusal is None:
        for row in item.evidence:
            if shelves.decisions.get(row.id) is not None:
                refusal = Refusal("duplicate", "decision", row.id)
                break
            shelves.decisions.put(row)
    if refusal is None:
        refusal = _judge_work(shelves, item.work)
    if refusal is None:
        shelves.keep()
    else:
        shelves.undo()
    return refusal


def _judge_work(shelves: Shelves, puts: Sequence[Put]) -> Refusal | None:
    for put in puts:
        row, table, shelf = put.row, WORK[type(put.row)], shelves.work[type(put.row)]
        old = shelf.get(shelf.key_of(row))
        if put.expected is None:
            if old is not None or shelf.clashes(row):
                return _of_work("duplicate", put, table)
        elif old is None or old.version != put.expected or not shelf.is_known_as(row, old):
            return _of_work("generation", put, table)
        if put.is_change:
            shelf.put(row)
    return None


def _of_work(kind: str, put: Put, table: Table) -> Refusal:
    key = getattr(put.row, table.key[0])
    text = uuid_text(key) if isinstance(key, bytes) else str(key)
    return Refusal(kind, table.name, key if isinstance(key, int) else 0, f"{table.name} {text}")


def slot_of(provider_id: int) -> int:
    """Return the identity of the row that holds a provider's generation."""
    return provider_id << CLASS_BITS | GENERATION_SLOT


def generation_row(provider_id: int, generation: int) -> Stock:
    """Return the row that holds a provider's generation.

    Its bounds let the guard of a claim pass for a row with releases only.
    """
    return Stock(slot_of(provider_id), 0, 0, 0, 0, 1, 0.0, generation)


def _judge_writes(shelves: Shelves, writes: Sequence[Write]) -> Refusal | None:
    for write in writes:
        refusal = _JUDGES[type(write)](shelves, write)
        if refusal is not None:
            return refusal
    return None


def _claim(shelves: Shelves, claim: Claim) -> Refusal | None:
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
        _bump(shelves, provider_id)
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


def _release(shelves: Shelves, release: Release) -> Refusal | None:
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
        _bump(shelves, provider_id)
    return None


def _put_provider(shelves: Shelves, write: PutProvider) -> Refusal | None:
    old = shelves.providers.get(write.id)
    if old is not None and write.version <= old.version:
        return Refusal("generation", "provider", write.id)
    if shelves.providers.clashes(write):
        return Refusal("duplicate", "provider", write.id)
    root_id = write.id
    if write.parent_id is not None:
        parent = shelves.providers.get(write.parent_id)
        if parent is None:
            return Refusal("missing", "provider", write.parent_id)
        root_id = parent.root_id
    if write.root_id != root_id:
        return Refusal("generation", "provider", write.id)
    shelves.providers.put(write)
    if old is None:
        shelves.stocks.put(generation_row(write.id, 0))
    return None


def _judge_trees(shelves: Shelves, writes: Sequence[Write]) -> Refusal | None:
    """Check the final trees of the whole item: a moved provider takes its subtree along, never below itself."""
    for write in writes:
        if not isinstance(write, PutProvider):
            continue
        now = shelves.providers.get(write.id)
        if now is None:
            continue
        if any(child.root_id != now.root_id for child in shelves.providers.among(now.id)):
            return Refusal("generation", "provider", now.id)
        seen, above = {now.id}, now.parent_id
        while above is not None:
            parent = shelves.providers.get(above)
            if parent is None or parent.id in seen:
                return Refusal("generation", "provider", now.id)
            seen.add(parent.id)
            above = parent.parent_id
    return None


def _drop_provider(shelves: Shelves, write: DropProvider) -> Refusal | None:
    if shelves.providers.get(write.id) is None:
        return Refusal("missing", "provider", write.id)
    stocks = list(shelves.stocks.among(write.id))
    is_used = any(stock.used > 0 for stock in stocks if stock.id & CLASS_MASK != GENERATION_SLOT)
    if is_used or any(True for _ in shelves.providers.among(write.id)):
        return Refusal("in_use", "provider", write.id)
    for stock in stocks:
        shelves.stocks.drop(stock.id)
    host = shelves.hosts.find(0, write.id)
    if host is not None:
        shelves.hosts.drop(host.id)
    shelves.traits.put(Labels(write.id, ()))
    shelves.memberships.put(Labels(write.id, ()))
    shelves.providers.drop(write.id)
    return None


def _expect(shelves: Shelves, provider_id: int, expected: int) -> Refusal | None:
    slot = shelves.stocks.get(slot_of(provider_id))
    if slot is None:
        return Refusal("missing", "provider", provider_id)
    if slot.used != expected:
        return Refusal("generation", "provider", provider_id)
    return None


def _bump(shelves: Shelves, provider_id: int, *, by: int = 1) -> None:
    slot = shelves.stocks.get(slot_of(provider_id))
    assert slot is not None, provider_id
    shelves.stocks.put(slot.with_used(slot.used + by))


def _put_inventories(shelves: Shelves, write: PutInventories) -> Refusal | None:
    refusal = _expect(shelves, write.provider_id, write.expected)
    refusal = refusal or _are_there(shelves, (row.class_id for row in write.inventories))
    if refusal is not None:
        return refusal
    wanted = {write.provider_id << CLASS_BITS | row.class_id: row for row in write.inventories}
    for stock in list(shelves.stocks.among(write.provider_id)):
        if stock.id & CLASS_MASK == GENERATION_SLOT or stock.id in wanted:
            continue
        if stock.used > 0:
            return Refusal("in_use", "inventory", stock.id)
        shelves.stocks.drop(stock.id)
    for inventory_id, row in wanted.items():
        old = shelves.stocks.get(inventory_id)
        shelves.stocks.put(_stock_of(inventory_id, row, used=0 if old is None else old.used))
    _bump(shelves, write.provider_id)
    return None


def _stock_of(inventory_id: int, row: InventoryRow, *, used: int) -> Stock:
    return Stock(
        inventory_id, row.total, row.reserved, row.min_unit, row.max_unit, row.step_size, row.allocation_ratio, used
    )


def _put_traits(shelves: Shelves, write: PutTraits) -> Refusal | None:
    refusal = _expect(shelves, write.provider_id, write.expected) or _are_there(shelves, write.trait_ids)
    if refusal is None:
        shelves.traits.put(Labels(write.provider_id, tuple(sorted(set(write.trait_ids)))))
        _bump(shelves, write.provider_id)
    return refusal


def _put_membership(shelves: Shelves, write: PutMembership) -> Refusal | None:
    refusal = _expect(shelves, write.provider_id, write.expected)
    if refusal is None:
        shelves.memberships.put(Labels(write.provider_id, tuple(sorted(set(write.aggregate_ids)))))
        if write.raises:
            _bump(shelves, write.provider_id)
    return refusal


def _raise_generation(shelves: Shelves, write: RaiseGeneration) -> Refusal | None:
    refusal = _expect(shelves, write.provider_id, write.expected)
    if refusal is None and write.by < 1:
        refusal = Refusal("generation", "provider", write.provider_id)
    if refusal is None:
        _bump(shelves, write.provider_id, by=write.by)
    return refusal


def _put_aggregate(shelves: Shelves, write: PutAggregate) -> Refusal | None:
    old = shelves.aggregates.get(write.id)
    if old is not None and write.version <= old.version:
        return Refusal("generation", "aggregate", write.id)
    if shelves.aggregates.clashes(write):
        return Refusal("duplicate", "aggregate", write.id)
    shelves.aggregates.put(write)
    return None


def _put_host(shelves: Shelves, write: PutHost) -> Refusal | None:
    old = shelves.hosts.get(write.id)
    if old is not None and write.version <= old.version:
        return Refusal("generation", "host", write.id)
    if shelves.hosts.clashes(write):
        return Refusal("duplicate", "host", write.id)
    if shelves.stocks.get(slot_of(write.provider_id)) is None:
        return Refusal("missing", "provider", write.provider_id)
    shelves.hosts.put(write)
    return None


def _put_symbol(shelves: Shelves, write: PutSymbol) -> Refusal | None:
    if shelves.symbols.get(write.id) is not None or shelves.symbols.clashes(write):
        return Refusal("duplicate", "symbol", write.id)
    shelves.symbols.put(write)
    return None


def _are_there(shelves: Shelves, symbol_ids: Iterable[int]) -> Refusal | None:
    """Refuse numbers whose names were dropped meanwhile."""
    for number in symbol_ids:
        symbol = shelves.symbols.get(number)
        if symbol is not None and symbol.kind.startswith(DROPPED):
            return Refusal("missing", "symbol", number)
    return None


def _drop_symbol(shelves: Shelves, write: DropSymbol) -> Refusal | None:
    symbol = shelves.symbols.get(write.id)
    if symbol is None or symbol.kind != write.kind:
        return Refusal("missing", "symbol", write.id)
    match write.kind:
        case "resource_class":
            is_used = any(stock.id & CLASS_MASK == write.id for stock in shelves.stocks.rows.values())
        case "trait":
            is_used = any(write.id in labels.ids for labels in shelves.traits.rows.values())
        case _:
            is_used = True  # Types are not checked for consumers, because they are never deleted.
    if is_used:
        return Refusal("in_use", "symbol", write.id)
    shelves.symbols.put(tombstone_of(write))
    return None


def _reuse_symbol(shelves: Shelves, write: ReuseSymbol) -> Refusal | None:
    dropped = tombstone_of(DropSymbol(write.kind, write.id, write.dropped_at_s))
    renamed = PutSymbol(write.kind, write.id, write.name)
    if not write.dropped_at_s or shelves.symbols.get(write.id) != dropped or shelves.symbols.clashes(renamed):
        return Refusal("duplicate", "symbol", write.id)
    shelves.symbols.put(renamed)
    return None


def _rename_symbol(shelves: Shelves, write: RenameSymbol) -> Refusal | None:
    symbol, renamed = shelves.symbols.get(write.id), PutSymbol(write.kind, write.id, write.name)
    if symbol is None or symbol.kind != write.kind:
        return Refusal("missing", "symbol", write.id)
    if shelves.symbols.clashes(renamed):
        return Refusal("duplicate", "symbol", write.id)
    shelves.symbols.put(renamed)
    return None


def _put_group(shelves: Shelves, write: PutGroup) -> Refusal | None:
    if shelves.groups.get(write.id) is not None or shelves.groups.clashes(write):
        return Refusal("duplicate", "server_group", write.id)
    shelves.groups.put(write)
    return None


def _put_document(shelves: Shelves, write: PutDocument) -> Refusal | None:
    if shelves.documents.get(write.id) is not None or shelves.documents.clashes(write):
        return Refusal("duplicate", "document", write.id)
    shelves.documents.put(write)
    return None


def _put_task(_shelves: Shelves, _write: PutTask) -> None:
    """Accept it: the row of work in the same item is judged."""


# PutGeneration is missing because it is never committed.
_JUDGES: dict[type, Callable[..., Refusal | None]] = {
    PutSymbol: _put_symbol,
    DropSymbol: _drop_symbol,
    ReuseSymbol: _reuse_symbol,
    RenameSymbol: _rename_symbol,
    PutProvider: _put_provider,
    DropProvider: _drop_provider,
    PutInventories: _put_inventories,
    PutTraits: _put_traits,
    PutMembership: _put_membership,
    RaiseGeneration: _raise_generation,
    PutAggregate: _put_aggregate,
    PutHost: _put_host,
    PutGroup: _put_group,
    PutDocument: _put_document,
    PutTask: _put_task,
    Claim: _claim,
    Release: _release,
}
