"""Server groups."""

from collections.abc import Mapping

from roost.model.writes import PutGroup, Refusal
from roost.store.rules.footprint import Touched
from roost.store.rules.row_cache import Shelves
from roost.store.rules.write_rule import WriteRule


def _touch(touched: Touched, write: PutGroup) -> None:
    touched.is_structural = True
    touched.look("server_group", "id", write.id)
    touched.look("server_group", "uuid", write.uuid)


def _judge(shelves: Shelves, write: PutGroup) -> Refusal | None:
    if shelves.groups.get(write.id) is not None or shelves.groups.clashes(write):
        return Refusal("duplicate", "server_group", write.id)
    shelves.groups.put(write)
    return None


RULES: Mapping[type, WriteRule] = {
    PutGroup: WriteRule(touch=_touch, judge=_judge),
}
