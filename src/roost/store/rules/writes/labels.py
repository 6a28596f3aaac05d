"""Traits and aggregates of providers."""

from collections.abc import Mapping

from roost.model.writes import PutMembership, PutTraits, Refusal
from roost.store.rules.footprint import Footprint
from roost.store.rules.generations import check_generation, raise_generation, slot_of
from roost.store.rules.row_cache import Labels, RowCache
from roost.store.rules.write_rule import WriteRule
from roost.store.rules.writes.symbols import check_symbols


def _collect_traits(footprint: Footprint, write: PutTraits) -> None:
    footprint.is_structural = True
    footprint.stock_ids.add(slot_of(write.provider_id))
    for trait_id in write.trait_ids:
        footprint.add("symbol", "id", trait_id)


def _collect_membership(footprint: Footprint, write: PutMembership) -> None:
    footprint.is_structural = True
    footprint.stock_ids.add(slot_of(write.provider_id))


def _judge_traits(cache: RowCache, write: PutTraits) -> Refusal | None:
    refusal = check_generation(cache, write.provider_id, write.expected) or check_symbols(cache, write.trait_ids)
    if refusal is None:
        cache.traits.put(Labels(write.provider_id, tuple(sorted(set(write.trait_ids)))))
        raise_generation(cache, write.provider_id)
    return refusal


def _judge_membership(cache: RowCache, write: PutMembership) -> Refusal | None:
    refusal = check_generation(cache, write.provider_id, write.expected)
    if refusal is None:
        cache.memberships.put(Labels(write.provider_id, tuple(sorted(set(write.aggregate_ids)))))
        if write.raises:
            raise_generation(cache, write.provider_id)
    return refusal


RULES: Mapping[type, WriteRule] = {
    PutTraits: WriteRule(collect=_collect_traits, judge=_judge_traits),
    PutMembership: WriteRule(collect=_collect_membership, judge=_judge_membership),
}
