"""New versions of rows, and derived uuids."""

import hashlib
from typing import TypeVar

import msgspec

from roost.model.work.work_rows import AgentRow, LeaseRow, MigrationRow, OperationRow, OrderRow, Put, StatusRow

V = TypeVar("V", AgentRow, StatusRow, OperationRow, OrderRow, MigrationRow, LeaseRow)


def next_version(row: V, /, **changes: object) -> V:
    """Return the next version of a row."""
    return msgspec.structs.replace(row, version=row.version + 1, **changes)


def replace_row(row: AgentRow | StatusRow | OperationRow | OrderRow | MigrationRow | LeaseRow) -> Put:
    """Return the write of a row in place of its previous version."""
    return Put(row, row.version - 1)


def require_unchanged(row: AgentRow | StatusRow) -> Put:
    """Make a commit fail if a row has changed since it was read."""
    return Put(row, row.version)


def make_due(operation: OperationRow, *, now_s: float) -> OperationRow:
    """Return an operation as due now; the commit of its present owner will fail."""
    return next_version(operation, due_at_s=now_s, owner="", owned_until_s=0.0, changed_at_s=now_s)


def derive_uuid(purpose: str, *parts: bytes) -> bytes:
    """Derive the uuid of an operation from its causes, so that every process begins the same operation, once.

    Args:
        purpose: such as ``offload``.
        parts: the causes, such as the uuid and version of a status.
    """
    return hashlib.blake2b(b"".join((purpose.encode(), *parts)), digest_size=16).digest()


def request_cancel(operation: OperationRow, *, now_s: float) -> OperationRow:
    """Return an operation as cancelled, and due now."""
    return msgspec.structs.replace(make_due(operation, now_s=now_s), is_cancelled=True)
