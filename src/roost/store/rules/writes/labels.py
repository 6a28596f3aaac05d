"""Traits and aggregates of providers."""

from collections.abc import Mapping

from roost.model.writes import PutMembership, PutTraits, Refusal
from roost.store.rules.footprint import Touched
from roost.store.rules.generations import check_generation, raise_generation, slot_of
from roost.store.rules.row_cache import Labels, Shelves
from roost.store.rules.write_rule import WriteRule
from roost.store.rules.writes.symbols import check_symbols


def _touch_traits(touched: Touched, write: PutTraits) -> None:
    touched.is_structural = True
    touched.stock_ids.add(slot_of(write.provider_id))
    for trait_id in write.trait_ids:
        touched.look("symbol", "id", trait_id)


def _touch_membership(touched: Touched, write: PutMembership) -> None:
    touched.is_structural = True
    touched.stock_ids.add(slot_of(write.provider_id))


def _judge_traits(shelves: Shelves, write: PutTraits) -> Refusal | None:
    refusal = check_generation(shelves, write.provider_id, write.expected) or check_symbols(shelves, write.trait_ids)
    if refusal is None:
        shelves.traits.put(Labels(write.provider_id, tuple(sorted(set(write.trait_ids)))))
        raise_generation(shelves, write.provider_id)
    return refusal


def _judge_membership(shelves: Shelves, write: PutMembership) -> Refusal | None:
    refusal = check_generation(shelves, write.provider_id, write.expected)
    if refusal is None:
        shelves.memberships.put(Labels(write.provider_id, tuple(sorted(set(write.aggregate_ids)))))
        if write.raises:
            raise_generation(shelves, write.provider_id)
    return refusal


RULES: Mapping[type, WriteRule] = {
    PutTraits: WriteRule(touch=_touch_traits, judge=_judge_traits),
    PutMembership: WriteRule(touch=_touch_membership, judge=_judge_membership),
}
