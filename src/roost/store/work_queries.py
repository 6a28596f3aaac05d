"""Queries of work for any store: they are defined once here, and each store finds the rows."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol

from roost.errors import report_corruption
from roost.model.work.change_query import FREQUENT_KINDS, ChangeQuery
from roost.model.work.work_rows import (
    AgentRow,
    ChangeRow,
    EventRow,
    LeaseRow,
    MigrationRow,
    OperationRow,
    OrderRow,
    StatusRow,
    WorkRow,
)
from roost.store.rules.codec import R, work_of
from roost.store.rules.footprint import Values
from roost.store.rules.schema import EVENT, INSTANCE_STATUS, MIGRATION, OPERATION, ORDERS, WORK, Table, select


class Condition(NamedTuple):
    """A condition on a column; for ``in`` the value is a sequence."""

    column: str
    operator: Literal["=", "<", ">", ">=", "<=", "in"]
    value: Any


class IndexedSubset(NamedTuple):
    """The rows of a partial index. A database uses the index only if the query repeats its condition."""

    text: str  # the condition of the index
    contains: Callable[[Any], bool]


class RowQuery(NamedTuple):
    """A query of one table."""

    table: Table
    conditions: tuple[Condition, ...]
    order: tuple[str, ...]
    is_descending: bool = False
    limit: int | None = None
    subset: IndexedSubset | None = None


class Rows(Protocol):
    """A source of rows."""

    def now_s(self) -> float:
        """See ``WorkReader.now_s``."""

    def find(self, query: RowQuery) -> list[tuple[Any, ...]]:
        """Return the rows that match a query, with all columns."""

    def tally(self, table: Table) -> tuple[int, int]:
        """Return the number of rows of a table, and the sum of their versions."""

    def close(self) -> None:
        """See ``WorkReader.close``."""


# Each process uses its own blocks of ids, so the ids of several processes do not rise with time.
_BY_TIME = ("created_at_s", "id")
_OPEN_OPERATIONS = IndexedSubset("outcome = ''", lambda row: row.outcome == "")
_OPEN_ORDERS = IndexedSubset("state IN ('waiting', 'taken')", lambda row: row.state in {"waiting", "taken"})
_ENDED_OPERATIONS = IndexedSubset("outcome <> ''", lambda row: row.outcome != "")
_RARE_CHANGES = IndexedSubset(f"kind NOT IN {FREQUENT_KINDS!r}", lambda row: row.kind not in FREQUENT_KINDS)
_ENDED_ROWS = {
    MIGRATION: IndexedSubset(
        "status IN ('confirmed', 'reverted', 'failed')", lambda row: row.status in {"confirmed", "reverted", "failed"}
    ),
    INSTANCE_STATUS: IndexedSubset("status = 'DELETED'", lambda row: row.status == "DELETED"),
}


class WorkQueries:
    """The queries of ``WorkReader``, over the rows of one store."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._agents: dict[str, AgentRow] = {}
        self._agents_tally = (0, 0)

    def now_s(self) -> float:
        """See ``WorkReader.now_s``."""
        return self._rows.now_s()

    def due_operations(self, cells: Sequence[str] | None, *, now_s: float, limit: int) -> list[OperationRow]:
        """See ``WorkReader.due_operations``."""
        in_cells = [] if cells is None else [Condition("cell", "in", cells)]
        conditions = [*in_cells, Condition("due_at_s", "<=", now_s), Condition("owned_until_s", "<=", now_s)]
        return self._find(OperationRow, conditions, order=("due_at_s", "id"), limit=limit, subset=_OPEN_OPERATIONS)

    def operation(self, number: int) -> OperationRow | None:
        """See ``WorkReader.operation``."""
        return self._find_one(OperationRow, Condition("id", "=", number))

    def operation_by_uuid(self, uuid: bytes) -> OperationRow | None:
        """See ``WorkReader.operation_by_uuid``."""
        return self._find_one(OperationRow, Condition("uuid", "=", uuid))

    def operations(self, *, after_id: int = 0, limit: int, is_open: bool = False) -> list[OperationRow]:
        """See ``WorkReader.operations``."""
        return self._find(
            OperationRow,
            [Condition("id", ">", after_id)],
            limit=limit,
            subset=_OPEN_OPERATIONS if is_open else None,
        )

    def open_operations_of(self, kind: str) -> list[OperationRow]:
        """See ``WorkReader.open_operations_of``."""
        return self._find(
            OperationRow, [Condition("kind", "=", kind)], order=("due_at_s", "id"), subset=_OPEN_OPERATIONS
        )

    def operations_on(self, instance_uuid: bytes, *, newest: int) -> list[OperationRow]:
        """See ``WorkReader.operations_on``."""
        conditions = [Condition("instance_uuid", "=", instance_uuid)]
        return self._find(OperationRow, conditions, order=_BY_TIME, is_descending=True, limit=newest)

    def recent_operations(self, *, newest: int) -> list[OperationRow]:
        """See ``WorkReader.recent_operations``."""
        return self._find(
            OperationRow, [], order=("changed_at_s", "id"), is_descending=True, limit=newest, subset=_ENDED_OPERATIONS
        )

    def operations_by_id(self, numbers: Sequence[int]) -> list[OperationRow]:
        """See ``WorkReader.operations_by_id``."""
        return self._find(OperationRow, [Condition("id", "in", numbers)])

    def open_operations_on(self, instance_uuids: Sequence[bytes]) -> list[OperationRow]:
        """See ``WorkReader.open_operations_on``."""
        return self._find(OperationRow, [Condition("instance_uuid", "in", instance_uuids)], subset=_OPEN_OPERATIONS)

    def parts_of(self, operation_id: int) -> list[OperationRow]:
        """See ``WorkReader.parts_of``."""
        return self._find(OperationRow, [Condition("parent_id", "=", operation_id)])

    def open_parts_of(self, operation_id: int, *, limit: int) -> list[OperationRow]:
        """See ``WorkReader.open_parts_of``."""
        return self._find(
            OperationRow, [Condition("parent_id", "=", operation_id)], limit=limit, subset=_OPEN_OPERATIONS
        )

    def status(self, uuid: bytes) -> StatusRow | None:
        """See ``WorkReader.status``."""
        return self._find_one(StatusRow, Condition("uuid", "=", uuid))

    def statuses_of(self, uuids: Sequence[bytes]) -> list[StatusRow]:
        """See ``WorkReader.statuses_of``."""
        return self._find(StatusRow, [Condition("uuid", "in", uuids)])

    def statuses(
        self,
        *,
        after_id: int = 0,
        limit: int,
        project_id: str | None = None,
        host: str | None = None,
        status: str | None = None,
    ) -> list[StatusRow]:
        """See ``WorkReader.statuses``."""
        filters = _equal_conditions(project_id=project_id, host=host, status=status)
        return self._find(StatusRow, [Condition("id", ">", after_id), *filters], limit=limit)

    def open_orders(self, hosts: Sequence[str], *, limit: int, actions: Sequence[str] | None = None) -> list[OrderRow]:
        """See ``WorkReader.open_orders``."""
        conditions = [
            Condition("host", "in", hosts),
            *([] if actions is None else [Condition("action", "in", actions)]),
        ]
        return self._find(OrderRow, conditions, limit=limit, subset=_OPEN_ORDERS)

    def order(self, number: int) -> OrderRow | None:
        """See ``WorkReader.order``."""
        return self._find_one(OrderRow, Condition("id", "=", number))

    def orders_by_id(self, numbers: Sequence[int]) -> list[OrderRow]:
        """See ``WorkReader.orders_by_id``."""
        return self._find(OrderRow, [Condition("id", "in", numbers)])

    def orders_of(self, operation_id: int) -> list[OrderRow]:
        """See ``WorkReader.orders_of``."""
        return self._find(OrderRow, [Condition("operation_id", "=", operation_id)], order=("number",))

    def orders_of_all(self, operation_ids: Sequence[int]) -> list[OrderRow]:
        """See ``WorkReader.orders_of_all``."""
        return self._find(OrderRow, [Condition("operation_id", "in", operation_ids)], order=("number", "id"))

    def migration(self, uuid: bytes) -> MigrationRow | None:
        """See ``WorkReader.migration``."""
        return self._find_one(MigrationRow, Condition("uuid", "=", uuid))

    def migrations_of(self, instance_uuid: bytes) -> list[MigrationRow]:
        """See ``WorkReader.migrations_of``."""
        return self._find(MigrationRow, [Condition("instance_uuid", "=", instance_uuid)], order=_BY_TIME)

    def migrations_of_all(self, instance_uuids: Sequence[bytes]) -> list[MigrationRow]:
        """See ``WorkReader.migrations_of_all``."""
        return self._find(MigrationRow, [Condition("instance_uuid", "in", instance_uuids)])

    def migrations(
        self,
        *,
        after_id: int = 0,
        limit: int,
        status: str | None = None,
        source_host: str | None = None,
        target_host: str | None = None,
    ) -> list[MigrationRow]:
        """See ``WorkReader.migrations``."""
        filters = _equal_conditions(status=status, source_host=source_host, target_host=target_host)
        return self._find(MigrationRow, [Condition("id", ">", after_id), *filters], limit=limit)

    def events_on(self, instance_uuid: bytes, *, newest: int) -> list[EventRow]:
        """See ``WorkReader.events_on``."""
        conditions = [Condition("instance_uuid", "=", instance_uuid)]
        return self._find(EventRow, conditions, order=("at_s", "id"), is_descending=True, limit=newest)

    def events_of(self, operation_id: int, *, newest: int) -> list[EventRow]:
        """See ``WorkReader.events_of``."""
        conditions = [Condition("operation_id", "=", operation_id)]
        return self._find(EventRow, conditions, order=("at_s", "id"), is_descending=True, limit=newest)

    def events_since(self, at_s: float, *, limit: int) -> list[EventRow]:
        """See ``WorkReader.events_since``."""
        return self._find(EventRow, [Condition("at_s", ">=", at_s)], order=("at_s", "id"), limit=limit)

    def events_before(self, at_s: float, *, newest: int) -> list[EventRow]:
        """See ``WorkReader.events_before``."""
        return self._find(
            EventRow, [Condition("at_s", "<", at_s)], order=("at_s", "id"), is_descending=True, limit=newest
        )

    def changes(self, query: ChangeQuery) -> list[ChangeRow]:
        """See ``WorkReader.changes``."""
        filters = _equal_conditions(
            object=query.object or None,
            user_id=query.user_id or None,
            project_id=query.project_id,
            request_id=query.request_id or None,
        )
        if query.kinds is not None:
            filters.append(Condition("kind", "in", query.kinds))
        if query.since_s is not None:
            filters.append(Condition("at_s", ">=", query.since_s))
        if query.until_s is not None:
            filters.append(Condition("at_s", "<=", query.until_s))
        are_rare = query.kinds is not None and not {*query.kinds} & {*FREQUENT_KINDS}
        find = partial(self._newest_changes, subset=_RARE_CHANGES if are_rare else None)
        if query.before is None:
            return find(filters, query.newest)
        # The changes of one commit have the same time.
        at_s, number = query.before
        found = find([*filters, Condition("at_s", "=", at_s), Condition("id", "<", number)], query.newest)
        left = query.newest - len(found)
        return found + (find([*filters, Condition("at_s", "<", at_s)], left) if left else [])

    def rare_changes_since(self, at_s: float, *, limit: int) -> list[ChangeRow]:
        """See ``WorkReader.rare_changes_since``."""
        conditions = [Condition("at_s", ">=", at_s)]
        return self._find(ChangeRow, conditions, order=("at_s", "id"), limit=limit, subset=_RARE_CHANGES)

    def _newest_changes(
        self, conditions: Sequence[Condition], newest: int, *, subset: IndexedSubset | None
    ) -> list[ChangeRow]:
        return self._find(ChangeRow, conditions, order=("at_s", "id"), is_descending=True, limit=newest, subset=subset)

    def agents(self) -> list[AgentRow]:
        """See ``WorkReader.agents``. Databases sort texts differently, so sort here."""
        return sorted(self._find(AgentRow, [], order=("host",)), key=lambda agent: agent.host)

    def agents_by_host(self) -> Mapping[str, AgentRow]:
        """See ``WorkReader.agents_by_host``.

        Agents are never deleted, and versions only grow. So an equal tally means equal versions of all agents.
        """
        tally = self._rows.tally(WORK[AgentRow])
        if tally != self._agents_tally:
            # The rows may include later commits than the tally; the next call then reads them again.
            self._agents = {agent.host: agent for agent in self._find(AgentRow, [], order=("host",))}
            self._agents_tally = tally
        return self._agents

    def agent(self, host: str) -> AgentRow | None:
        """See ``WorkReader.agent``."""
        return self._find_one(AgentRow, Condition("host", "=", host))

    def lease(self, name: str) -> LeaseRow | None:
        """See ``WorkReader.lease``."""
        return self._find_one(LeaseRow, Condition("name", "=", name))

    def close(self) -> None:
        """See ``WorkReader.close``."""
        self._rows.close()

    def _find_one(self, kind: type[R], condition: Condition) -> R | None:
        found = self._find(kind, [condition], order=(condition.column,))
        return found[0] if found else None

    def _find(
        self,
        kind: type[R],
        conditions: Sequence[Condition],
        *,
        order: tuple[str, ...] = ("id",),
        is_descending: bool = False,
        limit: int | None = None,
        subset: IndexedSubset | None = None,
    ) -> list[R]:
        query = RowQuery(WORK[kind], tuple(conditions), order, is_descending, limit, subset)
        found = self._rows.find(query)
        with report_corruption(f"a row of {query.table.name}"):
            return [work_of(kind, row) for row in found]


def _equal_conditions(**values: str | None) -> list[Condition]:
    return [Condition(column, "=", value) for column, value in values.items() if value is not None]


def find_expired(
    rows: Callable[[RowQuery], list[tuple[Any, ...]]], older_than_s: float, *, limit: int
) -> list[tuple[Table, list[Values]]]:
    """Return the keys of expired rows: events, deleted instances, ended migrations, ended operations with their orders.

    Operations with open orders stay: an order to destroy a guest may wait for the return of its host.

    Args:
        rows: the source of rows.
        older_than_s: rows of this moment or earlier expire; the oldest come first.
        limit: maximum number of keys per table, except orders.
    """
    queries = [RowQuery(EVENT, (Condition("at_s", "<=", older_than_s),), ("at_s", "id"), limit=limit)]
    for table, subset in _ENDED_ROWS.items():
        conditions = (Condition("changed_at_s", "<=", older_than_s),)
        queries.append(RowQuery(table, conditions, ("changed_at_s",), limit=limit, subset=subset))
    expired = [(query.table, [row[:1] for row in rows(query)]) for query in queries]
    return [(table, keys) for table, keys in (*expired, *_find_ended(rows, older_than_s, limit=limit)) if keys]


def _find_ended(
    rows: Callable[[RowQuery], list[tuple[Any, ...]]], older_than_s: float, *, limit: int
) -> list[tuple[Table, list[Values]]]:
    """Return the keys of ended operations without open orders, and of their orders."""
    after_s = -math.inf
    while True:
        conditions = (Condition("changed_at_s", "<=", older_than_s), Condition("changed_at_s", ">", after_s))
        page = rows(RowQuery(OPERATION, conditions, ("changed_at_s",), limit=limit, subset=_ENDED_OPERATIONS))
        operations = [work_of(OperationRow, row) for row in page]
        of_operations = (Condition("operation_id", "in", [operation.id for operation in operations]),)
        order_rows = rows(RowQuery(ORDERS, of_operations, ("id",))) if operations else []
        orders = [work_of(OrderRow, row) for row in order_rows]
        waiting = {order.operation_id for order in orders if _OPEN_ORDERS.contains(order)}
        operation_keys: list[Values] = [(operation.id,) for operation in operations if operation.id not in waiting]
        if operation_keys or len(operations) < limit:
            order_keys: list[Values] = [(order.id,) for order in orders if order.operation_id not in waiting]
            return [(OPERATION, operation_keys), (ORDERS, order_keys)]
        after_s = operations[-1].changed_at_s


def tally_statement(table: Table) -> str:
    """Return the SQL statement of ``Rows.tally``."""
    return f"SELECT count(*), coalesce(sum(version), 0) FROM {table.name}"  # noqa: S608  # our names


def statement(query: RowQuery, condition_of: Callable[[Condition], str]) -> str:
    """Return the SQL statement of a query.

    Args:
        condition_of: returns the SQL of one condition, in the dialect of the database.
    """
    conditions = [condition_of(condition) for condition in query.conditions]
    if query.subset is not None:
        conditions.append(query.subset.text)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    direction = " DESC" if query.is_descending else ""
    order = ", ".join(f"{column}{direction}" for column in query.order)
    limit = "" if query.limit is None else f" LIMIT {int(query.limit)}"
    return select(query.table, f"{where}ORDER BY {order}{limit}")


def select_rows(query: RowQuery, rows: Iterable[WorkRow]) -> list[WorkRow]:
    """Return the rows of a table that match a query."""
    found = list(rows)
    for condition in query.conditions:
        found = _narrow(found, condition)
    if query.subset is not None:
        found = list(filter(query.subset.contains, found))
    found.sort(key=attrgetter(*query.order), reverse=query.is_descending)
    return found[: query.limit]


def _narrow(rows: list[WorkRow], condition: Condition) -> list[WorkRow]:
    """Return the rows that match a condition. Simulations spend much of their time here."""
    column, wanted = attrgetter(condition.column), condition.value
    match condition.operator:
        case "=":
            return [row for row in rows if column(row) == wanted]
        case "<":
            return [row for row in rows if column(row) < wanted]
        case "in":
            return [row for row in rows if column(row) in wanted]
        case ">":
            return [row for row in rows if column(row) > wanted]
        case ">=":
            return [row for row in rows if column(row) >= wanted]
        case "<=":
            return [row for row in rows if column(row) <= wanted]
