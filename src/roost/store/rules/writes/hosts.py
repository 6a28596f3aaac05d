"""Hosts and their facts."""

from collections.abc import Mapping

from roost.model.writes import PutHost, Refusal
from roost.store.rules.footprint import Footprint
from roost.store.rules.generations import slot_of
from roost.store.rules.row_cache import RowCache
from roost.store.rules.write_rule import WriteRule


def _collect(footprint: Footprint, write: PutHost) -> None:
    footprint.is_structural = True
    footprint.add("host", "id", write.id)
    footprint.add("host", "provider_id", write.provider_id)
    footprint.add("host", "host node", write.host, write.node)
    footprint.stock_ids.add(slot_of(write.provider_id))


def _judge(cache: RowCache, write: PutHost) -> Refusal | None:
    old = cache.hosts.get(write.id)
    if old is not None and write.version <= old.version:
        return Refusal("generation", "host", write.id)
    if cache.hosts.clashes(write):
        return Refusal("duplicate", "host", write.id)
    if cache.stocks.get(slot_of(write.provider_id)) is None:
        return Refusal("missing", "provider", write.provider_id)
    cache.hosts.put(write)
    return None


RULES: Mapping[type, WriteRule] = {
    PutHost: WriteRule(collect=_collect, judge=_judge),
}
