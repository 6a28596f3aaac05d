"""Aggregates."""

from collections.abc import Mapping

from roost.model.writes import PutAggregate, Refusal
from roost.store.rules.footprint import Touched
from roost.store.rules.row_cache import Shelves
from roost.store.rules.write_rule import WriteRule


def _touch(touched: Touched, write: PutAggregate) -> None:
    touched.is_structural = True
    touched.look("aggregate", "id", write.id)
    touched.look("aggregate", "uuid", write.uuid)


def _judge(shelves: Shelves, write: PutAggregate) -> Refusal | None:
    old = shelves.aggregates.get(write.id)
    if old is not None and write.version <= old.version:
        return Refusal("generation", "aggregate", write.id)
    if shelves.aggregates.clashes(write):
        return Refusal("duplicate", "aggregate", write.id)
    shelves.aggregates.put(write)
    return None


RULES: Mapping[type, WriteRule] = {
    PutAggregate: WriteRule(touch=_touch, judge=_judge),
}
