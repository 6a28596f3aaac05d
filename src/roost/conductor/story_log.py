"""Logs the lines of stories that this process commits: builds, moves, drains, agents lost and back."""

from collections.abc import Sequence

import msgspec

from roost.conductor.operation.story import event_type_of
from roost.model.names import uuid_text
from roost.model.settings.log_settings import Level
from roost.model.work.work_rows import EventRow, OperationRow, Put
from roost.observe import log

# Ends of kinds that an operator should see.
_PROBLEMS = ("failed", "gone", "stayed", "apart", "disabled")
_TEXT_MAX = 500


def log_stories(work: Sequence[Put]) -> None:
    """Log each new line of a story in committed work."""
    rows = [put.row for put in work if isinstance(put.row, EventRow)]
    if not rows:
        return
    operations = {put.row.id: uuid_text(put.row.uuid) for put in work if isinstance(put.row, OperationRow)}
    for row in rows:
        details = msgspec.json.decode(row.body, type=dict[str, str]) if row.body else {}
        level: Level = "warning" if row.kind.rpartition(".")[2] in _PROBLEMS else "info"
        fields = {
            "kind": event_type_of(row),
            "instance": None if row.instance_uuid is None else uuid_text(row.instance_uuid),
            "operation": operations.get(row.operation_id),
        }
        more = {name: text[:_TEXT_MAX] for name, text in details.items() if name not in fields}
        log.write("story", {**fields, **more}, level=level)
