"""Names of resource classes, traits and consumer types."""

from collections.abc import Iterable, Mapping

from roost.model.writes import CLASS_MASK, DropSymbol, PutSymbol, Refusal, RenameSymbol, ReuseSymbol
from roost.store.rules.footprint import Touched
from roost.store.rules.row_cache import Shelves
from roost.store.rules.write_rule import WriteRule

# Prefix of the kind of a dropped symbol. Its row stays, so that its number is not reused soon, and a process that still
# uses it is refused.
DROPPED = "dropped "


def tombstone_of(write: DropSymbol) -> PutSymbol:
    """Return the row of a dropped number; its name is the time of the deletion."""
    since = f" {int(write.at_s)}" if write.at_s else ""
    return PutSymbol(DROPPED + write.kind, write.id, f"{write.id}{since}")


def check_symbols(shelves: Shelves, symbol_ids: Iterable[int]) -> Refusal | None:
    """Refuse numbers of deleted names."""
    for number in symbol_ids:
        symbol = shelves.symbols.get(number)
        if symbol is not None and symbol.kind.startswith(DROPPED):
            return Refusal("missing", "symbol", number)
    return None


def _touch_name(touched: Touched, write: PutSymbol | RenameSymbol | ReuseSymbol) -> None:
    touched.is_structural = True
    touched.look("symbol", "id", write.id)
    touched.look("symbol", "kind name", write.kind, write.name)


def _touch_users(touched: Touched, write: DropSymbol) -> None:
    touched.is_structural = True
    touched.look("symbol", "id", write.id)
    (touched.worn if write.kind == "trait" else touched.offered).add(write.id)


def _judge_put(shelves: Shelves, write: PutSymbol) -> Refusal | None:
    if shelves.symbols.get(write.id) is not None or shelves.symbols.clashes(write):
        return Refusal("duplicate", "symbol", write.id)
    shelves.symbols.put(write)
    return None


def _judge_drop(shelves: Shelves, write: DropSymbol) -> Refusal | None:
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


def _judge_reuse(shelves: Shelves, write: ReuseSymbol) -> Refusal | None:
    dropped = tombstone_of(DropSymbol(write.kind, write.id, write.dropped_at_s))
    renamed = PutSymbol(write.kind, write.id, write.name)
    if not write.dropped_at_s or shelves.symbols.get(write.id) != dropped or shelves.symbols.clashes(renamed):
        return Refusal("duplicate", "symbol", write.id)
    shelves.symbols.put(renamed)
    return None


def _judge_rename(shelves: Shelves, write: RenameSymbol) -> Refusal | None:
    symbol, renamed = shelves.symbols.get(write.id), PutSymbol(write.kind, write.id, write.name)
    if symbol is None or symbol.kind != write.kind:
        return Refusal("missing", "symbol", write.id)
    if shelves.symbols.clashes(renamed):
        return Refusal("duplicate", "symbol", write.id)
    shelves.symbols.put(renamed)
    return None


RULES: Mapping[type, WriteRule] = {
    PutSymbol: WriteRule(touch=_touch_name, judge=_judge_put),
    DropSymbol: WriteRule(touch=_touch_users, judge=_judge_drop),
    ReuseSymbol: WriteRule(touch=_touch_name, judge=_judge_reuse),
    RenameSymbol: WriteRule(touch=_touch_name, judge=_judge_rename),
}
