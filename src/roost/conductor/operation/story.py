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
    **details: str,
) -> Put:
    """Return a new line of the story.

    Args:
        kind: of the event, such as ``spawn.failed``.
        details: texts; empty ones are left out.
    """
    body = msgspec.json.encode({name: text for name, text in details.items() if text})
    number = current.new_id("event")
    return Put(
        EventRow(id=number, at_s=now_s, instance_uuid=instance_uuid, operation_id=operation_id, kind=kind, body=body)
    )


def event_type_of(row: EventRow) -> str:
    """Return the type of an event: its subject, then its kind."""
    if row.instance_uuid is not None:
        return f"instance.{row.kind}"
    # Rows about agents can belong to an operation, such as the cleanup of a host.
    is_of_agent = row.kind.startswith("agent.") or not row.operation_id
    return row.kind if is_of_agent else f"operation.{row.kind}"
