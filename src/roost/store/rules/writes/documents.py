"""Documents: flavors, images, requests, settings."""

from collections.abc import Mapping

from roost.model.writes import PutDocument, Refusal
from roost.store.rules.footprint import Footprint
from roost.store.rules.row_cache import RowCache
from roost.store.rules.write_rule import WriteRule


def _collect(footprint: Footprint, write: PutDocument) -> None:
    footprint.is_structural = True
    footprint.add("document", "id", write.id)
    footprint.add("document", "kind fingerprint", write.kind, write.fingerprint)


def _judge(cache: RowCache, write: PutDocument) -> Refusal | None:
    if cache.documents.get(write.id) is not None or cache.documents.clashes(write):
        return Refusal("duplicate", "document", write.id)
    cache.documents.put(write)
    return None


RULES: Mapping[type, WriteRule] = {
    PutDocument: WriteRule(collect=_collect, judge=_judge),
}
