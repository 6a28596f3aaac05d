"""Queries of work for any store: they are defined once here, and each store finds the rows."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol

from roost.errors import report_corruption
from roost.model.work.work_rows import (
    AgentRow,
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


class Has(NamedTuple):
    """A condition on a column; for ``in`` the value is a sequence."""

    column: str
    sign: Literal["=", ">", ">=", "<=", "in"]
    value: Any


class Part(NamedTuple):
    """The indexed part of a table, which a query must name in exactly these words."""

    text: str
    holds: Callable[[Any], bool]


class Question(NamedTuple):
    """A query of one table."""

    table: Table
    has: tuple[Has, ...]
    order: tuple[str, ...]
    is_newest: bool = False  # whether the order is descending
    most: int | None = None
    part: Part | None = None


class Rows(Protocol):
    """A source of rows."""

    def now_s(self) -> float:
        """See ``WorkReader.now_s``."""

    def find(self, question: Question) -> list[tuple[Any, ...]]:
        """Return the rows that match a query, with all columns."""

    def tally(self, table: Table) -> tuple[int, int]:
        """Return the number of rows of a table, and the sum of their versions."""

    def close(self) -> None:
        """See ``WorkReader.close``."""


# Each process uses its own block of numbers, so with several processes they do not rise with time.
_IN_TIME = ("created_at_s", "id")
_OPEN = Part("outcome = ''", lambda row: row.outcome == "")
_UNANSWERED = Part("state IN ('waiting', 'taken')", lambda row: row.state in {"waiting", "taken"})
_ENDED = Part("outcome <> ''", lambda row: row.outcome != "")
_OVER = {
    MIGRATION: Part(
        "status IN ('confirmed', 'reverted', 'failed')", lambda row: row.status in {"confirmed", "reverted", "failed"}
    ),
    INSTANCE_STATUS: Part("status = 'DELETED'", lambda row: row.status == "DELETED"),
}


class WorkReading:
    """Answers queries of work.

    Args:
        rows: of one store.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._agents: dict[str, AgentRow] = {}
        self._agents_tally = (0, 0)

    def now_s(self) -> float:
        """See ``WorkReader.now_s``."""
        return self._rows.now_s()

    def due_operations(self, cells: Sequence[str] | None, *, now_s: float, most: int) -> list[OperationRow]:
        """See ``WorkReader.due_operations``."""
        where = [] if cells is None else [Has("cell", "in", cells)]
        has = [*where, Has("due_at_s", "<=", now_s), Has("owned_until_s", "<=", now_s)]
        return self._find(OperationRow, has, order=("due_at_s", "id"), most=most, part=_OPEN)

    def operation(self, number: int) -> OperationRow | None:
        """See ``WorkReader.operation``."""
        return self._one(OperationRow, Has("id", "=", number))

    def operation_of(self, uuid: bytes) -> OperationRow | None:
        """See ``WorkReader.operation_of``."""
        return self._one(OperationRow, Has("uuid", "=", uuid))

    def operations(self, *, after_id: int = 0, most: int, is_open: bool = False) -> list[OperationRow]:
        """See ``WorkReader.operations``."""
        return self._find(OperationRow, [Has("id", ">", after_id)], most=most, part=_OPEN if is_open else None)

    def operations_on(self, instance_uuid: bytes, *, newest: int) -> list[OperationRow]:
        """See ``WorkReader.operations_on``."""
        has = [Has("instance_uuid", "=", instance_uuid)]
        return self._find(OperationRow, has, order=_IN_TIME, is_newest=True, most=newest)

    def operations_by(self, numbers: Sequence[int]) -> list[OperationRow]:
        """See ``WorkReader.operations_by``."""
        return self._find(OperationRow, [Has("id", "in", numbers)])

    def open_operations_on(self, instance_uuids: Sequence[bytes]) -> list[OperationRow]:
        """See ``WorkReader.open_operations_on``."""
        return self._find(OperationRow, [Has("instance_uuid", "in", instance_uuids)], part=_OPEN)

    def parts_of(self, operation_id: int) -> list[OperationRow]:
        """See ``WorkReader.parts_of``."""
        return self._find(OperationRow, [Has("parent_id", "=", operation_id)])

    def open_parts_of(self, operation_id: int, *, most: int) -> list[OperationRow]:
        """See ``WorkReader.open_parts_of``."""
        return self._find(OperationRow, [Has("parent_id", "=", operation_id)], most=most, part=_OPEN)

    def status(self, uuid: bytes) -> StatusRow | None:
        """See ``WorkReader.status``."""
        return self._one(StatusRow, Has("uuid", "=", uuid))

    def statuses_of(self, uuids: Sequence[bytes]) -> list[StatusRow]:
        """See ``WorkReader.statuses_of``."""
        return self._find(StatusRow, [Has("uuid", "in", uuids)])

    def statuses(
        self,
        *,
        after_id: int = 0,
        most: int,
        project_id: str | None = None,
        host: str | None = None,
        status: str | None = None,
    ) -> list[StatusRow]:
        """See ``WorkReader.statuses``."""
        given = _equal_conditions(project_id=project_id, host=host, status=status)
        return self._find(StatusRow, [Has("id", ">", after_id), *given], most=most)

    def open_orders(self, hosts: Sequence[str], *, most: int, actions: Sequence[str] | None = None) -> list[OrderRow]:
        """See ``WorkReader.open_orders``."""
        has = [Has("host", "in", hosts), *([] if actions is None else [Has("action", "in", actions)])]
        return self._find(OrderRow, has, most=most, part=_UNANSWERED)

    def order(self, number: int) -> OrderRow | None:
        """See ``WorkReader.order``."""
        return self._one(OrderRow, Has("id", "=", number))

    def orders_named(self, numbers: Sequence[int]) -> list[OrderRow]:
        """See ``WorkReader.orders_named``."""
        return self._find(OrderRow, [Has("id", "in", numbers)])

    def orders_of(self, operation_id: int) -> list[OrderRow]:
        """See ``WorkReader.orders_of``."""
        return self._find(OrderRow, [Has("operation_id", "=", operation_id)], order=("number",))

    def orders_of_all(self, operation_ids: Sequence[int]) -> list[OrderRow]:
        """See ``WorkReader.orders_of_all``."""
        return self._find(OrderRow, [Has("operation_id", "in", operation_ids)], order=("number", "id"))

    def migration(self, uuid: bytes) -> MigrationRow | None:
        """See ``WorkReader.migration``."""
        return self._one(MigrationRow, Has("uuid", "=", uuid))

    def migrations_of(self, instance_uuid: bytes) -> list[MigrationRow]:
        """See ``WorkReader.migrations_of``."""
        return self._find(MigrationRow, [Has("instance_uuid", "=", instance_uuid)], order=_IN_TIME)

    def migrations_of_all(self, instance_uuids: Sequence[bytes]) -> list[MigrationRow]:
        """See ``WorkReader.migrations_of_all``."""
        return self._find(MigrationRow, [Has("instance_uuid", "in", instance_uuids)])

    def migrations(
        self,
        *,
        after_id: int = 0,
        most: int,
        status: str | None = None,
        source_host: str | None = None,
        target_host: str | None = None,
    ) -> list[MigrationRow]:
        """See ``WorkReader.migrations``."""
        given = _equal_conditions(status=status, source_host=source_host, target_host=target_host)
        return self._find(MigrationRow, [Has("id", ">", after_id), *given], most=most)

    def events_on(self, instance_uuid: bytes, *, newest: int) -> list[EventRow]:
        """See ``WorkReader.events_on``."""
        has = [Has("instance_uuid", "=", instance_uuid)]
        return self._find(EventRow, has, order=("at_s", "id"), is_newest=True, most=newest)

    def events_of(self, operation_id: int, *, newest: int) -> list[EventRow]:
        """See ``WorkReader.events_of``."""
        has = [Has("operation_id", "=", operation_id)]
        return self._find(EventRow, has, order=("at_s", "id"), is_newest=True, most=newest)

    def events_since(self, at_s: float, *, most: int) -> list[EventRow]:
        """See ``WorkReader.events_since``."""
        return self._find(EventRow, [Has("at_s", ">=", at_s)], order=("at_s", "id"), most=most)

    def agents(self) -> list[AgentRow]:
        """See ``WorkReader.agents``. Databases sort texts differently, so it is sorted here."""
        return sorted(self._find(AgentRow, [], order=("host",)), key=lambda agent: agent.host)

    def agents_in_charge(self) -> Mapping[str, AgentRow]:
        """See ``WorkReader.agents_in_charge``. Agents are never deleted, and versions only grow."""
        tally = self._rows.tally(WORK[AgentRow])
        if tally != self._agents_tally:
            # Commits in between are in the rows, but not in the tally: then the rows are read again.
            self._agents = {agent.host: agent for agent in self._find(AgentRow, [], order=("host",))}
            self._agents_tally = tally
        return self._agents

    def agent(self, host: str) -> AgentRow | None:
        """See ``WorkReader.agent``."""
        return self._one(AgentRow, Has("host", "=", host))

    def lease(self, name: str) -> LeaseRow | None:
        """See ``WorkReader.lease``."""
        return self._one(LeaseRow, Has("name", "=", name))

    def close(self) -> None:
        """See ``WorkReader.close``."""
        self._rows.close()

    def _one(self, kind: type[R], has: Has) -> R | None:
        found = self._find(kind, [has], order=(has.column,))
        return found[0] if found else None

    def _find(
        self,
        kind: type[R],
        has: Sequence[Has],
        *,
        order: tuple[str, ...] = ("id",),
        is_newest: bool = False,
        most: int | None = None,
        part: Part | None = None,
    ) -> list[R]:
        question = Question(WORK[kind], tuple(has), order, is_newest, most, part)
        found = self._rows.find(question)
        with report_corruption(f"a row of {question.table.name}"):
            return [work_of(kind, row) for row in found]


def _equal_conditions(**values: str | None) -> list[Has]:
    return [Has(column, "=", value) for column, value in values.items() if value is not None]


def find_expired(
    rows: Callable[[Question], list[tuple[Any, ...]]], older_than_s: float, *, most: int
) -> list[tuple[Table, list[Values]]]:
    """Return the keys of work that ended at a moment or earlier, oldest first, and of its orders.

    An operation ends after its orders: a guest to destroy waits for the return of its host.

    Args:
        rows: the source of rows.
        most: maximum number per table, except orders.
    """
    questions = [Question(EVENT, (Has("at_s", "<=", older_than_s),), ("at_s", "id"), most=most)]
    for table, part in _OVER.items():
        has = (Has("changed_at_s", "<=", older_than_s),)
        questions.append(Question(table, has, ("changed_at_s",), most=most, part=part))
    gone = [(question.table, [row[:1] for row in rows(question)]) for question in questions]
    return [(table, keys) for table, keys in (*gone, *_find_ended(rows, older_than_s, most=most)) if keys]


def _find_ended(
    rows: Callable[[Question], list[tuple[Any, ...]]], older_than_s: float, *, most: int
) -> list[tuple[Table, list[Values]]]:
    """Return the keys of operations without outstanding answers, and of their orders."""
    after_s = -math.inf
    while True:
        has = (Has("changed_at_s", "<=", older_than_s), Has("changed_at_s", ">", after_s))
        page = rows(Question(OPERATION, has, ("changed_at_s",), most=most, part=_ENDED))
        found = [work_of(OperationRow, row) for row in page]
        asked = (Has("operation_id", "in", [each.id for each in found]),)
        orders = [work_of(OrderRow, row) for row in (rows(Question(ORDERS, asked, ("id",))) if found else [])]
        open_ = {order.operation_id for order in orders if _UNANSWERED.holds(order)}
        over: list[Values] = [(each.id,) for each in found if each.id not in open_]
        if over or len(found) < most:
            told: list[Values] = [(each.id,) for each in orders if each.operation_id not in open_]
            return [(OPERATION, over), (ORDERS, told)]
        after_s = found[-1].changed_at_s


def tallying(table: Table) -> str:
    """Return the statement that asks a database for a tally."""
    return f"SELECT count(*), coalesce(sum(version), 0) FROM {table.name}"  # noqa: S608  # our names


def statement(question: Question, condition_of: Callable[[Has], str]) -> str:
    """Return the SQL statement of a query.

    Args:
        condition_of: the condition on one column, in the dialect of the database.
    """
    conditions = [condition_of(has) for has in question.has]
    if question.part is not None:
        conditions.append(question.part.text)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    direction = " DESC" if question.is_newest else ""
    most = "" if question.most is None else f" LIMIT {int(question.most)}"
    return select(question.table, f"{where}ORDER BY {', '.join(f'{each}{direction}' for each in question.order)}{most}")


def select_rows(question: Question, rows: Iterable[WorkRow]) -> list[WorkRow]:
    """Return the rows of a table that match a query."""
    part = question.part
    found = [row for row in rows if all(_is(row, has) for has in question.has) and (part is None or part.holds(row))]
    found.sort(key=attrgetter(*question.order), reverse=question.is_newest)
    return found[: question.most]


def _is(row: WorkRow, has: Has) -> bool:
    value = getattr(row, has.column)
    match has.sign:
        case "=":
            return bool(value == has.value)
        case "in":
            return value in has.value
        case ">":
            return bool(value > has.value)
        case ">=":
            return bool(value >= has.value)
        case "<=":
            return bool(value <= has.value)
