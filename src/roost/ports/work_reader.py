"""The interface to committed work."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from roost.model.work.change_query import ChangeQuery
from roost.model.work.work_rows import (
    AgentRow,
    ChangeRow,
    EventRow,
    LeaseRow,
    MigrationRow,
    OperationRow,
    OrderRow,
    StatusRow,
)


class WorkReader(Protocol):
    """Committed work; one thread uses it at a time.

    Rows may change right after they are read. So a commit names the versions of the rows it depends on, and is refused
    if one has changed. Lists are sorted by id, ascending, unless stated otherwise; ``limit`` and ``newest`` bound them.
    """

    def now_s(self) -> float:
        """Return the common time of all processes on the database, in seconds since the epoch.

        Raises:
            Unavailable: the database cannot be read. Every method below raises it, too.
        """

    def due_operations(self, cells: Sequence[str] | None, *, now_s: float, limit: int) -> list[OperationRow]:
        """Return due open operations without an owner in some cells, by due time; None: in all cells, with a scan."""

    def operation(self, number: int) -> OperationRow | None:
        """Return an operation by its id."""

    def operation_by_uuid(self, uuid: bytes) -> OperationRow | None:
        """Return an operation by its uuid."""

    def operations(self, *, after_id: int = 0, limit: int, is_open: bool = False) -> list[OperationRow]:
        """Return a page of all operations, or of the open ones."""

    def open_operations_of(self, kind: str) -> list[OperationRow]:
        """Return the open operations of one kind, by due time."""

    def operations_on(self, instance_uuid: bytes, *, newest: int) -> list[OperationRow]:
        """Return the last operations of an instance, newest first."""

    def recent_operations(self, *, newest: int) -> list[OperationRow]:
        """Return the operations that ended last, newest first."""

    def operations_by_id(self, numbers: Sequence[int]) -> list[OperationRow]:
        """Return operations by their ids; unknown ones are left out."""

    def open_operations_on(self, instance_uuids: Sequence[bytes]) -> list[OperationRow]:
        """Return the open operations of some instances."""

    def parts_of(self, operation_id: int) -> list[OperationRow]:
        """Return the sub-operations of an operation."""

    def open_parts_of(self, operation_id: int, *, limit: int) -> list[OperationRow]:
        """Return open sub-operations of an operation."""

    def status(self, uuid: bytes) -> StatusRow | None:
        """Return the status of an instance."""

    def statuses_of(self, uuids: Sequence[bytes]) -> list[StatusRow]:
        """Return the statuses of instances; unknown ones are left out."""

    def statuses(
        self,
        *,
        after_id: int = 0,
        limit: int,
        project_id: str | None = None,
        host: str | None = None,
        status: str | None = None,
    ) -> list[StatusRow]:
        """Return a page of statuses, all or filtered."""

    def open_orders(self, hosts: Sequence[str], *, limit: int, actions: Sequence[str] | None = None) -> list[OrderRow]:
        """Return unanswered orders of hosts, all or with some actions."""

    def order(self, number: int) -> OrderRow | None:
        """Return an order by its id."""

    def orders_by_id(self, numbers: Sequence[int]) -> list[OrderRow]:
        """Return orders by their ids; unknown ones are left out."""

    def orders_of(self, operation_id: int) -> list[OrderRow]:
        """Return the orders of an operation, by number."""

    def orders_of_all(self, operation_ids: Sequence[int]) -> list[OrderRow]:
        """Return the orders of some operations, by number."""

    def migration(self, uuid: bytes) -> MigrationRow | None:
        """Return a migration."""

    def migrations_of(self, instance_uuid: bytes) -> list[MigrationRow]:
        """Return the migrations of an instance, oldest first."""

    def migrations_of_all(self, instance_uuids: Sequence[bytes]) -> list[MigrationRow]:
        """Return the migrations of some instances."""

    def migrations(
        self,
        *,
        after_id: int = 0,
        limit: int,
        status: str | None = None,
        source_host: str | None = None,
        target_host: str | None = None,
    ) -> list[MigrationRow]:
        """Return a page of migrations, all or filtered."""

    def events_on(self, instance_uuid: bytes, *, newest: int) -> list[EventRow]:
        """Return the last events of an instance, newest first."""

    def events_of(self, operation_id: int, *, newest: int) -> list[EventRow]:
        """Return the last events of an operation, newest first."""

    def events_since(self, at_s: float, *, limit: int) -> list[EventRow]:
        """Return events since a moment, by time."""

    def events_before(self, at_s: float, *, newest: int) -> list[EventRow]:
        """Return the last events before a moment, newest first."""

    def changes(self, query: ChangeQuery) -> list[ChangeRow]:
        """Return the changes of clients that match a query, newest first."""

    def rare_changes_since(self, at_s: float, *, limit: int) -> list[ChangeRow]:
        """Return the changes of clients since a moment, by time, without claims and releases."""

    def agents(self) -> list[AgentRow]:
        """Return all agents, by host."""

    def agents_by_host(self) -> Mapping[str, AgentRow]:
        """Return all agents by host, as last written; the time of their last poll may be outdated."""

    def agent(self, host: str) -> AgentRow | None:
        """Return the agent of a host."""

    def lease(self, name: str) -> LeaseRow | None:
        """Return a lease."""

    def close(self) -> None:
        """Close its connection."""
