"""Views of operations: the rows needed for their next steps, read for all operations together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from roost.conductor.operation.step import Terms, View
from roost.conductor.steps import table_of
from roost.model.work.work_rows import RESTORE_LEASE, AgentRow, MigrationRow, OperationRow, OrderRow, StatusRow
from roost.ports import WorkReader

# Rows per query.
_QUERY_MAX = 500

R = TypeVar("R")
K = TypeVar("K", int, bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows of several operations."""

    subjects: Mapping[int, Sequence[bytes]]  # by operation: uuids of its instances
    statuses: Mapping[bytes, StatusRow]  # by instance
    migrations: Mapping[bytes, Sequence[MigrationRow]]  # by instance, if its steps need them
    orders: Mapping[int, Sequence[OrderRow]]  # by operation
    others: Mapping[bytes, Sequence[OperationRow]]  # all open operations on these instances, by instance
    holders: Mapping[int, OperationRow]  # operations with locks on these instances, by id
    agents: Mapping[str, AgentRow]  # by host
    restored_at_s: float  # as in ``View``
    parts: Mapping[int, Sequence[OperationRow]]  # by operation: its sub-operations; only for kinds with ``has_parts``


def views_of(rows: Sequence[OperationRow], *, reader: WorkReader, terms: Terms) -> list[View]:
    """Return the views of operations, in the same order.

    Raises:
        StoreBroken: a row cannot be decoded.
        Unavailable: the database cannot be read.
    """
    related, now_s = _read_rows(rows, reader), reader.now_s()
    return [_view(row, related, now_s=now_s, terms=terms) for row in rows]


def _read_rows(rows: Sequence[OperationRow], reader: WorkReader) -> _Rows:
    subjects = {row.id: table_of(row).subjects(row) for row in rows}
    uuids = {uuid for own in subjects.values() for uuid in own}
    statuses = {status.uuid: status for status in _read(reader.statuses_of, uuids)}
    moving = {uuid for row in rows for uuid in _moving_instances(row, subjects[row.id], statuses)}
    own = {row.instance_uuid for row in rows if row.instance_uuid is not None}
    holders = {status.operation_id for status in statuses.values() if status.operation_id}
    restore = reader.lease(RESTORE_LEASE)
    return _Rows(
        subjects=subjects,
        restored_at_s=0.0 if restore is None else restore.until_s,
        statuses=statuses,
        agents=reader.agents_by_host(),
        parts={row.id: reader.parts_of(row.id) for row in rows if table_of(row).has_parts},
        migrations=_group_by(_read(reader.migrations_of_all, moving), lambda each: each.instance_uuid),
        orders=_group_by(_read(reader.orders_of_all, {row.id for row in rows}), lambda order: order.operation_id),
        others=_group_by(_read(reader.open_operations_on, own), lambda each: each.instance_uuid or b""),
        holders={row.id: row for row in _read(reader.operations_by_id, holders)},
    )


def _moving_instances(row: OperationRow, subjects: Iterable[bytes], statuses: Mapping[bytes, StatusRow]) -> list[bytes]:
    """Return the instances whose migrations belong in the view of an operation."""
    own_statuses = [statuses[uuid] for uuid in subjects if uuid in statuses]
    return [status.uuid for status in own_statuses if status.migration_uuid is not None or row.kind == "clean"]


def _view(row: OperationRow, related: _Rows, *, now_s: float, terms: Terms) -> View:
    subjects = related.subjects[row.id]
    statuses = {uuid: related.statuses[uuid] for uuid in subjects if uuid in related.statuses}
    waiting = holder = None
    if row.instance_uuid is not None:
        deletions = [each for each in related.others.get(row.instance_uuid, ()) if each.kind == "delete"]
        waiting = next((each for each in reversed(deletions) if each.id != row.id), None)
        status = statuses.get(row.instance_uuid)
        found = None if status is None else related.holders.get(status.operation_id)
        holder = None if found is None or found.outcome or found.id == row.id else found
    return View(
        operation=row,
        orders=related.orders.get(row.id, ()),
        statuses=statuses,
        agents=related.agents,
        waiting=waiting,
        migrations=[
            each for uuid in _moving_instances(row, subjects, statuses) for each in related.migrations.get(uuid, ())
        ],
        holder=holder,
        parts=related.parts.get(row.id, ()),
        now_s=now_s,
        restored_at_s=related.restored_at_s,
        terms=terms,
    )


def _read(read: Callable[[Sequence[K]], list[R]], keys: Iterable[K]) -> list[R]:
    """Read the rows of all keys, in queries of limited size."""
    remaining, rows = iter(sorted(keys)), []
    while page := list(islice(remaining, _QUERY_MAX)):
        rows += read(page)
    return rows


def _group_by(rows: Iterable[R], key: Callable[[R], K]) -> Mapping[K, Sequence[R]]:
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found
