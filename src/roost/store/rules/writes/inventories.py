"""Inventories of providers."""

from collections.abc import Mapping

from roost.model.writes import CLASS_BITS, CLASS_MASK, GENERATION_SLOT, InventoryRow, PutInventories, Refusal
from roost.store.rules.footprint import Touched
from roost.store.rules.generations import check_generation, raise_generation
from roost.store.rules.row_cache import Shelves, Stock
from roost.store.rules.write_rule import WriteRule
from roost.store.rules.writes.symbols import check_symbols


def _touch(touched: Touched, write: PutInventories) -> None:
    touched.is_structural = True
    touched.whole_providers.add(write.provider_id)
    for row in write.inventories:
        touched.look("symbol", "id", row.class_id)


def _judge(shelves: Shelves, write: PutInventories) -> Refusal | None:
    refusal = check_generation(shelves, write.provider_id, write.expected)
    refusal = refusal or check_symbols(shelves, (row.class_id for row in write.inventories))
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
    raise_generation(shelves, write.provider_id)
    return None


def _stock_of(inventory_id: int, row: InventoryRow, *, used: int) -> Stock:
    return Stock(
        inventory_id, row.total, row.reserved, row.min_unit, row.max_unit, row.step_size, row.allocation_ratio, used
    )


RULES: Mapping[type, WriteRule] = {
    PutInventories: WriteRule(touch=_touch, judge=_judge),
}
