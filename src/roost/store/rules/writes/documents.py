"""Documents: flavors, images, requests, settings."""

from collections.abc import Mapping

from roost.model.writes import PutDocument, Refusal
from roost.store.rules.footprint import Touched
from roost.store.rules.row_cache import Shelves
from roost.store.rules.write_rule import WriteRule


def _touch(touched: Touched, write: PutDocument) -> None:
    touched.is_structural = True
    touched.look("document", "id", write.id)
    touched.look("document", "kind fingerprint", write.kind, write.fingerprint)


def _judge(shelves: Shelves, write: PutDocument) -> Refusal | None:
    if shelves.documents.get(write.id) is not None or shelves.documents.clashes(write):
        return Refusal("duplicate", "document", write.id)
    shelves.documents.put(write)
    return None


RULES: Mapping[type, WriteRule] = {
    PutDocument: WriteRule(touch=_touch, judge=_judge),
}
