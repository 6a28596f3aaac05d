"""Server groups."""

from collections.abc import Mapping

from roost.model.writes import PutGroup, Refusal
from roost.store.rules.footprint import Footprint
from roost.store.rules.row_cache import RowCache
from roost.store.rules.write_rule import WriteRule


def _collect(footprint: Footprint, write: PutGroup) -> None:
    footprint.is_structural = True
    footprint.add("server_group", "id", write.id)
    footprint.add("server_group", "uuid", write.uuid)


def _judge(cache: RowCache, write: PutGroup) -> Refusal | None:
    if cache.groups.get(write.id) is not None or cache.groups.clashes(write):
        return Refusal("duplicate", "server_group", write.id)
    cache.groups.put(write)
    return None


RULES: Mapping[type, WriteRule] = {
    PutGroup: WriteRule(collect=_collect, judge=_judge),
}
