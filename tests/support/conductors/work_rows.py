"""Small rows of the work tables for tests."""

from typing import Any

import msgspec

from roost.model.work.work_rows import (
    AgentRow,
    ChangeRow,
    EventRow,
    LeaseRow,
    MigrationRow,
    OperationRow,
    OrderRow,
    Put,
    StatusRow,
)
from tests.contract.stores import uuid_of


def agent(host: str = "h1", /, **changes: Any) -> AgentRow:
    known: dict[str, Any] = {
        "host": host,
        "name": host.upper(),
        "run": uuid_of("run", host),
        "driver": "fake",
        "state": "ready",
        "registered_at_s": 900.0,
        "heard_at_s": 900.0,
        "fence": 1,
    }
    return AgentRow(**(known | changes))


def status(number: int = 1, /, **changes: Any) -> StatusRow:
    known: dict[str, Any] = {
        "uuid": uuid_of("instance", number),
        "id": number,
        "name": f"i{number}",
        "project_id": "project",
        "user_id": "user",
        "status": "BUILD",
        "task": "scheduling",
        "flavor_id": 1,
        "request_id": 2,
        "created_at_s": 1000.0,
        "changed_at_s": 1000.0,
    }
    return StatusRow(**(known | changes))


def operation(number: int = 1, /, **changes: Any) -> OperationRow:
    known: dict[str, Any] = {
        "id": number,
        "uuid": uuid_of("operation", number),
        "kind": "build",
        "step": "choose",
        "due_at_s": 1000.0,
        "created_at_s": 1000.0,
        "changed_at_s": 1000.0,
    }
    return OperationRow(**(known | changes))


def order(number: int = 1, /, **changes: Any) -> OrderRow:
    known: dict[str, Any] = {"id": number, "operation_id": 1, "number": number, "host": "h1", "action": "spawn"}
    return OrderRow(**(known | changes))


def migration(number: int = 1, /, **changes: Any) -> MigrationRow:
    known: dict[str, Any] = {
        "uuid": uuid_of("migration", number),
        "id": number,
        "instance_uuid": uuid_of("instance", 1),
        "kind": "resize",
        "status": "moving",
        "source_host": "h1",
        "source_node": "n1",
        "old_flavor_id": 1,
        "new_flavor_id": 2,
        "operation_id": 1,
        "created_at_s": 1000.0,
        "changed_at_s": 1000.0,
    }
    return MigrationRow(**(known | changes))


def lease(name: str = "watch", /, **changes: Any) -> LeaseRow:
    return LeaseRow(**({"name": name, "owner": "one", "until_s": 1030.0} | changes))


def event(number: int = 1, /, **changes: Any) -> EventRow:
    return EventRow(**({"id": number, "at_s": 1000.0 + number, "kind": "build.choose"} | changes))


def replacement(row: Any, /, **changes: Any) -> Put:
    """Return the write that replaces a row with its next version."""
    return Put(msgspec.structs.replace(row, version=row.version + 1, **changes), expected=row.version)


def change(number: int = 1, /, **changes: Any) -> ChangeRow:
    known: dict[str, Any] = {
        "id": number,
        "at_s": 1000.0 + number,
        "kind": "host.disable",
        "object": "host-1",
        "user_id": "alice",
        "project_id": "ops",
        "roles": "admin,member",
        "request_id": f"req-{number}",
        "body": b'{"reason":"old"}',
    }
    return ChangeRow(**(known | changes))
