"""Aggregates."""

from collections.abc import Mapping

from roost.model.writes import PutAggregate, Refusal
from roost.store.rules.footprint import Footprint
from roost.store.rules.row_cache import RowCache
from roost.store.rules.write_rule import WriteRule


def _collect(footprint: Footprint, write: PutAggregate) -> None:
    footprint.is_structural = True
    footprint.add("aggregate", "id", write.id)
    footprint.add("aggregate", "uuid", write.uuid)


def _judge(cache: RowCache, write: PutAggregate) -> Refusal | None:
    old = cache.aggregates.get(write.id)
    if old is not None and write.version <= old.version:
        return Refusal("generation", "aggregate", write.id)
    if cache.aggregates.clashes(write):
        return Refusal("duplicate", "aggregate", write.id)
    cache.aggregates.put(write)
    return None


RULES: Mapping[type, WriteRule] = {
    PutAggregate: WriteRule(collect=_collect, judge=_judge),
}
