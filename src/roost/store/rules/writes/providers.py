"""Providers and their trees."""

from collections.abc import Mapping, Sequence

from roost.model.writes import CLASS_MASK, GENERATION_SLOT, DropProvider, PutProvider, RaiseGeneration, Refusal, Write
from roost.store.rules.footprint import Footprint
from roost.store.rules.generations import check_generation, generation_row, raise_generation, slot_of
from roost.store.rules.row_cache import Labels, RowCache
from roost.store.rules.write_rule import WriteRule


def judge_trees(cache: RowCache, writes: Sequence[Write]) -> Refusal | None:
    """Check the trees after the whole item: a moved provider takes its subtree along, and never moves below itself."""
    for write in writes:
        if not isinstance(write, PutProvider):
            continue
        now = cache.providers.get(write.id)
        if now is None:
            continue
        if any(child.root_id != now.root_id for child in cache.providers.find_group(now.id)):
            return Refusal("generation", "provider", now.id)
        seen, above = {now.id}, now.parent_id
        while above is not None:
            parent = cache.providers.get(above)
            if parent is None or parent.id in seen:
                return Refusal("generation", "provider", now.id)
            seen.add(parent.id)
            above = parent.parent_id
    return None


def _collect_tree(footprint: Footprint, write: PutProvider) -> None:
    footprint.is_structural = True
    footprint.add("provider", "id", write.id)
    footprint.add("provider", "uuid", write.uuid)
    footprint.add("provider", "name", write.name)
    footprint.trees.add(write.id)
    if write.parent_id is not None:
        footprint.add("provider", "id", write.parent_id)
        footprint.trees.add(write.parent_id)


def _collect_all(footprint: Footprint, write: DropProvider) -> None:
    footprint.is_structural = True
    footprint.add("provider", "id", write.id)
    footprint.trees.add(write.id)
    footprint.whole_providers.add(write.id)
    footprint.add("host", "provider_id", write.id)


def _collect_generation(footprint: Footprint, write: RaiseGeneration) -> None:
    footprint.is_structural = True
    footprint.stock_ids.add(slot_of(write.provider_id))


def _judge_put(cache: RowCache, write: PutProvider) -> Refusal | None:
    old = cache.providers.get(write.id)
    if old is not None and write.version <= old.version:
        return Refusal("generation", "provider", write.id)
    if cache.providers.clashes(write):
        return Refusal("duplicate", "provider", write.id)
    root_id = write.id
    if write.parent_id is not None:
        parent = cache.providers.get(write.parent_id)
        if parent is None:
            return Refusal("missing", "provider", write.parent_id)
        root_id = parent.root_id
    if write.root_id != root_id:
        return Refusal("generation", "provider", write.id)
    cache.providers.put(write)
    if old is None:
        cache.stocks.put(generation_row(write.id, 0))
    return None


def _judge_drop(cache: RowCache, write: DropProvider) -> Refusal | None:
    if cache.providers.get(write.id) is None:
        return Refusal("missing", "provider", write.id)
    stocks = list(cache.stocks.find_group(write.id))
    is_used = any(stock.used > 0 for stock in stocks if stock.id & CLASS_MASK != GENERATION_SLOT)
    if is_used or any(True for _ in cache.providers.find_group(write.id)):
        return Refusal("in_use", "provider", write.id)
    for stock in stocks:
        cache.stocks.drop(stock.id)
    host = cache.hosts.find(0, write.id)
    if host is not None:
        cache.hosts.drop(host.id)
    cache.traits.put(Labels(write.id, ()))
    cache.memberships.put(Labels(write.id, ()))
    cache.providers.drop(write.id)
    return None


def _judge_raise(cache: RowCache, write: RaiseGeneration) -> Refusal | None:
    refusal = check_generation(cache, write.provider_id, write.expected)
    if refusal is None and write.by < 1:
        refusal = Refusal("generation", "provider", write.provider_id)
    if refusal is None:
        raise_generation(cache, write.provider_id, by=write.by)
    return refusal


RULES: Mapping[type, WriteRule] = {
    PutProvider: WriteRule(collect=_collect_tree, judge=_judge_put),
    DropProvider: WriteRule(collect=_collect_all, judge=_judge_drop),
    RaiseGeneration: WriteRule(collect=_collect_generation, judge=_judge_raise),
}
