"""Lines of the story of instances, operations and agents."""

import msgspec

from roost.model.work.work_rows import EventRow, Put
from roost.ports import Commits


def line(
    current: Commits,
    kind: str,
    *,
    now_s: float,
    instance_uuid: bytes | None = None,
    operation_id: int = 0,
    **told: str,
) -> Put:
    """Return a new line of the story.

    Args:
        kind: what happened, such as ``spawn.failed``.
        told: more of it, in words; what is empty is left out.
    """
    body = msgspec.json.encode({name: text for name, text in told.items() if text})
    number = current.new_id("event")
    return Put(
        EventRow(id=number, at_s=now_s, instance_uuid=instance_uuid, operation_id=operation_id, kind=kind, body=body)
    )
