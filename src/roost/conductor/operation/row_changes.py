"""Rows of work that take the place of others, and uuids of what follows from them."""

import hashlib
from typing import TypeVar

import msgspec

from roost.model.work.work_rows import AgentRow, LeaseRow, MigrationRow, OperationRow, OrderRow, Put, StatusRow

V = TypeVar("V", AgentRow, StatusRow, OperationRow, OrderRow, MigrationRow, LeaseRow)


def next_version(row: V, /, **changes: object) -> V:
    """Return the next version of a row."""
    return msgspec.structs.replace(row, version=row.version + 1, **changes)


def replace_row(row: AgentRow | StatusRow | OperationRow | OrderRow | MigrationRow | LeaseRow) -> Put:
    """Return what puts a row in the place of the version before it."""
    return Put(row, row.version - 1)


def require_unchanged(row: AgentRow | StatusRow) -> Put:
    """Return what makes a commit fail where a row that it rests on was changed since it was read."""
    return Put(row, row.version)


def make_due(operation: OperationRow, *, now_s: float) -> OperationRow:
    """Return an operation that whoever finds it goes on with at once; who works on it now loses its commit."""
    return next_version(operation, due_at_s=now_s, owner="", owned_until_s=0.0, changed_at_s=now_s)


def derive_uuid(word: str, *parts: bytes) -> bytes:
    """Return the uuid of what follows from something, the same whoever makes it: so it begins once.

    Args:
        word: what it is, such as ``offload``.
        parts: what it follows from.
    """
    return hashlib.blake2b(b"".join((word.encode(), *parts)), digest_size=16).digest()


def request_cancel(operation: OperationRow, *, now_s: float) -> OperationRow:
    """Return an operation that is asked to end."""
    return msgspec.structs.replace(make_due(operation, now_s=now_s), is_cancelled=True)
