"""Server groups."""

from collections.abc import Mapping

from roost.model.writes import DropGroup, PutGroup, Refusal
from roost.store.rules.footprint import Footprint
from roost.store.rules.row_cache import RowCache
from roost.store.rules.write_rule import WriteRule


def _collect_put(footprint: Footprint, write: PutGroup) -> None:
    footprint.is_structural = True
    footprint.add("server_group", "id", write.id)
    footprint.add("server_group", "uuid", write.uuid)


def _collect_drop(footprint: Footprint, write: DropGroup) -> None:
    footprint.is_structural = True
    footprint.dropped_groups.add(write.id)
    footprint.add("server_group", "id", write.id)


def _judge_put(cache: RowCache, write: PutGroup) -> Refusal | None:
    if cache.groups.get(write.id) is not None or cache.groups.clashes(write):
        return Refusal("duplicate", "server_group", write.id)
    cache.groups.put(write)
    return None


def _judge_drop(cache: RowCache, write: DropGroup) -> Refusal | None:
    if cache.groups.get(write.id) is None:
        return Refusal("missing", "server_group", write.id)
    seats = [seat for seat in cache.seats.rows.values() if seat.group_id == write.id]
    if any(seat.members for seat in seats) or any(row.group_id == write.id for row in cache.instances.rows.values()):
        return Refusal("in_use", "server_group", write.id)
    for seat in seats:
        cache.seats.drop((seat.group_id, seat.scope))
    cache.groups.drop(write.id)
    return None


RULES: Mapping[type, WriteRule] = {
    PutGroup: WriteRule(collect=_collect_put, judge=_judge_put),
    DropGroup: WriteRule(collect=_collect_drop, judge=_judge_drop),
}
