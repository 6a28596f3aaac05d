"""Inventories of providers."""

from collections.abc import Mapping

from roost.model.writes import CLASS_BITS, CLASS_MASK, GENERATION_SLOT, InventoryRow, PutInventories, Refusal
from roost.store.rules.footprint import Footprint
from roost.store.rules.generations import check_generation, raise_generation
from roost.store.rules.row_cache import RowCache, Stock
from roost.store.rules.write_rule import WriteRule
from roost.store.rules.writes.symbols import check_symbols


def _collect(footprint: Footprint, write: PutInventories) -> None:
    footprint.is_structural = True
    footprint.whole_providers.add(write.provider_id)
    for row in write.inventories:
        footprint.add("symbol", "id", row.class_id)


def _judge(cache: RowCache, write: PutInventories) -> Refusal | None:
    refusal = check_generation(cache, write.provider_id, write.expected)
    refusal = refusal or check_symbols(cache, (row.class_id for row in write.inventories))
    if refusal is not None:
        return refusal
    new = {write.provider_id << CLASS_BITS | row.class_id: row for row in write.inventories}
    for stock in list(cache.stocks.find_group(write.provider_id)):
        if stock.id & CLASS_MASK == GENERATION_SLOT or stock.id in new:
            continue
        if stock.used > 0:
            return Refusal("in_use", "inventory", stock.id)
        cache.stocks.drop(stock.id)
    for inventory_id, row in new.items():
        old = cache.stocks.get(inventory_id)
        cache.stocks.put(_stock_of(inventory_id, row, used=0 if old is None else old.used))
    raise_generation(cache, write.provider_id)
    return None


def _stock_of(inventory_id: int, row: InventoryRow, *, used: int) -> Stock:
    return Stock(
        inventory_id, row.total, row.reserved, row.min_unit, row.max_unit, row.step_size, row.allocation_ratio, used
    )


RULES: Mapping[type, WriteRule] = {
    PutInventories: WriteRule(collect=_collect, judge=_judge),
}
