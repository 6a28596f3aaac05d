"""Providers and their trees."""

from collections.abc import Mapping, Sequence

from roost.model.writes import CLASS_MASK, GENERATION_SLOT, DropProvider, PutProvider, RaiseGeneration, Refusal, Write
from roost.store.rules.footprint import Touched
from roost.store.rules.generations import check_generation, generation_row, raise_generation, slot_of
from roost.store.rules.row_cache import Labels, Shelves
from roost.store.rules.write_rule import WriteRule


def judge_trees(shelves: Shelves, writes: Sequence[Write]) -> Refusal | None:
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


def _touch_tree(touched: Touched, write: PutProvider) -> None:
    touched.is_structural = True
    touched.look("provider", "id", write.id)
    touched.look("provider", "uuid", write.uuid)
    touched.look("provider", "name", write.name)
    touched.trees.add(write.id)
    if write.parent_id is not None:
        touched.look("provider", "id", write.parent_id)
        touched.trees.add(write.parent_id)


def _touch_all(touched: Touched, write: DropProvider) -> None:
    touched.is_structural = True
    touched.look("provider", "id", write.id)
    touched.trees.add(write.id)
    touched.whole_providers.add(write.id)
    touched.look("host", "provider_id", write.id)


def _touch_generation(touched: Touched, write: RaiseGeneration) -> None:
    touched.is_structural = True
    touched.stock_ids.add(slot_of(write.provider_id))


def _judge_put(shelves: Shelves, write: PutProvider) -> Refusal | None:
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


def _judge_drop(shelves: Shelves, write: DropProvider) -> Refusal | None:
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


def _judge_raise(shelves: Shelves, write: RaiseGeneration) -> Refusal | None:
    refusal = check_generation(shelves, write.provider_id, write.expected)
    if refusal is None and write.by < 1:
        refusal = Refusal("generation", "provider", write.provider_id)
    if refusal is None:
        raise_generation(shelves, write.provider_id, by=write.by)
    return refusal


RULES: Mapping[type, WriteRule] = {
    PutProvider: WriteRule(touch=_touch_tree, judge=_judge_put),
    DropProvider: WriteRule(touch=_touch_all, judge=_judge_drop),
    RaiseGeneration: WriteRule(touch=_touch_generation, judge=_judge_raise),
}
