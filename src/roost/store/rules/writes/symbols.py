"""Names of resource classes, traits and consumer types."""

from collections.abc import Iterable, Mapping

from roost.model.writes import CLASS_MASK, DropSymbol, PutSymbol, Refusal, RenameSymbol, ReuseSymbol
from roost.store.rules.footprint import Footprint
from roost.store.rules.row_cache import RowCache
from roost.store.rules.write_rule import WriteRule

# Prefix of the kind of a dropped symbol. The row of the symbol stays, so that its number is not reused soon, and the
# store refuses writes that still use the number.
DROPPED = "dropped "


def tombstone_of(write: DropSymbol) -> PutSymbol:
    """Return the row of a dropped number; its name is the number and, if known, the time of the deletion."""
    since = f" {int(write.at_s)}" if write.at_s else ""
    return PutSymbol(DROPPED + write.kind, write.id, f"{write.id}{since}")


def check_symbols(cache: RowCache, symbol_ids: Iterable[int]) -> Refusal | None:
    """Refuse numbers of deleted names."""
    for number in symbol_ids:
        symbol = cache.symbols.get(number)
        if symbol is not None and symbol.kind.startswith(DROPPED):
            return Refusal("missing", "symbol", number)
    return None


def _collect_name(footprint: Footprint, write: PutSymbol | RenameSymbol | ReuseSymbol) -> None:
    footprint.is_structural = True
    footprint.add("symbol", "id", write.id)
    footprint.add("symbol", "kind name", write.kind, write.name)


def _collect_users(footprint: Footprint, write: DropSymbol) -> None:
    footprint.is_structural = True
    footprint.add("symbol", "id", write.id)
    (footprint.whole_traits if write.kind == "trait" else footprint.whole_classes).add(write.id)


def _judge_put(cache: RowCache, write: PutSymbol) -> Refusal | None:
    if cache.symbols.get(write.id) is not None or cache.symbols.clashes(write):
        return Refusal("duplicate", "symbol", write.id)
    cache.symbols.put(write)
    return None


def _judge_drop(cache: RowCache, write: DropSymbol) -> Refusal | None:
    symbol = cache.symbols.get(write.id)
    if symbol is None or symbol.kind != write.kind:
        return Refusal("missing", "symbol", write.id)
    match write.kind:
        case "resource_class":
            is_used = any(stock.id & CLASS_MASK == write.id for stock in cache.stocks.rows.values())
        case "trait":
            is_used = any(write.id in labels.ids for labels in cache.traits.rows.values())
        case _:
            is_used = True  # Consumer types are never deleted.
    if is_used:
        return Refusal("in_use", "symbol", write.id)
    cache.symbols.put(tombstone_of(write))
    return None


def _judge_reuse(cache: RowCache, write: ReuseSymbol) -> Refusal | None:
    dropped = tombstone_of(DropSymbol(write.kind, write.id, write.dropped_at_s))
    renamed = PutSymbol(write.kind, write.id, write.name)
    if not write.dropped_at_s or cache.symbols.get(write.id) != dropped or cache.symbols.clashes(renamed):
        return Refusal("duplicate", "symbol", write.id)
    cache.symbols.put(renamed)
    return None


def _judge_rename(cache: RowCache, write: RenameSymbol) -> Refusal | None:
    symbol, renamed = cache.symbols.get(write.id), PutSymbol(write.kind, write.id, write.name)
    if symbol is None or symbol.kind != write.kind:
        return Refusal("missing", "symbol", write.id)
    if cache.symbols.clashes(renamed):
        return Refusal("duplicate", "symbol", write.id)
    cache.symbols.put(renamed)
    return None


RULES: Mapping[type, WriteRule] = {
    PutSymbol: WriteRule(collect=_collect_name, judge=_judge_put),
    DropSymbol: WriteRule(collect=_collect_users, judge=_judge_drop),
    ReuseSymbol: WriteRule(collect=_collect_name, judge=_judge_reuse),
    RenameSymbol: WriteRule(collect=_collect_name, judge=_judge_rename),
}
