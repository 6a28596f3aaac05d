"""Aggregates with their hosts and metadata, from Nova's API database."""

from typing import Any

from sqlalchemy import Connection, DateTime, Integer, String, column, select, table
from sqlalchemy.sql import TableClause
from sqlalchemy.sql.expression import ColumnClause

from roost.nova.database.database_link import change_mark
from roost.nova.database.nova_fleet import NovaAggregate


def _table(name: str, *columns: ColumnClause[Any]) -> TableClause:
    times = (column("created_at", DateTime), column("updated_at", DateTime))
    return table(name, column("id", Integer), *times, *columns)


AGGREGATES = _table("aggregates", column("uuid", String), column("name", String))
AGGREGATE_HOSTS = _table("aggregate_hosts", column("aggregate_id", Integer), column("host", String))
AGGREGATE_METADATA = _table(
    "aggregate_metadata", column("aggregate_id", Integer), column("key", String), column("value", String)
)


class AggregateRows:
    """The aggregates, read again when they change.

    A cheap query shows most changes. Changes of the same second as the last read can escape it, so callers also
    read everything from time to time.
    """

    def __init__(self) -> None:
        self._mark: tuple[object, ...] = ()
        self._known: tuple[NovaAggregate, ...] | None = None

    def read(self, connection: Connection, *, wants_all: bool) -> tuple[NovaAggregate, ...] | None:
        """Return all aggregates, sorted by id, if they have changed since the last read; else None."""
        mark = change_mark(connection, AGGREGATES, AGGREGATE_HOSTS, AGGREGATE_METADATA)
        if mark == self._mark and not wants_all:
            return None
        found = read_aggregates(connection)
        self._mark = mark
        if found == self._known:
            return None
        self._known = found
        return found

    def forget(self) -> None:
        """Return all aggregates at the next read."""
        self._mark, self._known = (), None


def read_aggregates(connection: Connection) -> tuple[NovaAggregate, ...]:
    """Read all aggregates, sorted by id.

    Source:
        nova/objects/aggregate.py; tables aggregates, aggregate_hosts, aggregate_metadata.
    """
    hosts: dict[int, list[str]] = {}
    for aggregate_id, host in connection.execute(select(AGGREGATE_HOSTS.c.aggregate_id, AGGREGATE_HOSTS.c.host)):
        if host:
            hosts.setdefault(aggregate_id, []).append(host)
    metadata: dict[int, dict[str, str]] = {}
    columns = AGGREGATE_METADATA.c
    # In an order, because equal metadata must be equal texts elsewhere.
    rows = connection.execute(select(columns.aggregate_id, columns.key, columns.value).order_by(columns.id))
    for aggregate_id, key, value in rows:
        metadata.setdefault(aggregate_id, {})[key] = value
    columns = AGGREGATES.c
    return tuple(
        NovaAggregate(
            id=number,
            uuid=uuid or "",
            name=name or "",
            hosts=tuple(sorted(hosts.get(number, ()))),
            metadata=metadata.get(number, {}),
        )
        for number, uuid, name in connection.execute(
            select(columns.id, columns.uuid, columns.name).order_by(columns.id)
        )
    )
