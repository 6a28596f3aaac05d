"""Hosts and their facts."""

from collections.abc import Mapping

from roost.model.writes import PutHost, Refusal
from roost.store.rules.footprint import Touched
from roost.store.rules.generations import slot_of
from roost.store.rules.row_cache import Shelves
from roost.store.rules.write_rule import WriteRule


def _touch(touched: Touched, write: PutHost) -> None:
    touched.is_structural = True
    touched.look("host", "id", write.id)
    touched.look("host", "provider_id", write.provider_id)
    touched.look("host", "host node", write.host, write.node)
    touched.stock_ids.add(slot_of(write.provider_id))


def _judge(shelves: Shelves, write: PutHost) -> Refusal | None:
    old = shelves.hosts.get(write.id)
    if old is not None and write.version <= old.version:
        return Refusal("generation", "host", write.id)
    if shelves.hosts.clashes(write):
        return Refusal("duplicate", "host", write.id)
    if shelves.stocks.get(slot_of(write.provider_id)) is None:
        return Refusal("missing", "provider", write.provider_id)
    shelves.hosts.put(write)
    return None


RULES: Mapping[type, WriteRule] = {
    PutHost: WriteRule(touch=_touch, judge=_judge),
}
