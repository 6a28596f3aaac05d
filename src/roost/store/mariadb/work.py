"""Rows of work in a MariaDB database: queries on a connection of their own, and the deletion of expired rows."""

from typing import Any

from roost.model.settings.roost_settings import Store as Settings
from roost.model.work.change_query import FREQUENT_KINDS
from roost.store.mariadb.connection import Connection
from roost.store.mariadb.link import Link
from roost.store.mariadb.script import key_condition, literal
from roost.store.old_changes import find_old_changes
from roost.store.rules.schema import Table
from roost.store.servers.lost_hosts import Losses
from roost.store.work_queries import Condition, RowQuery, find_expired, statement, tally_statement

_NOW = "SELECT UNIX_TIMESTAMP(SYSDATE(6))"
_DELETED_AT_ONCE = 1000
# MariaDB has no partial indexes. Columns that are computed from others stand in their place.
_SUBSETS = {
    "outcome = ''": "is_ended = 0",
    "outcome <> ''": "is_ended = 1",
    "state IN ('waiting', 'taken')": "is_open = 1",
    f"kind NOT IN {FREQUENT_KINDS!r}": "is_rare = 1",
}


class WorkRows:
    """A connection for queries; each query sees all earlier commits.

    Args:
        url: see ``address``.
        settings: deadlines and waits.
        losses: of the connection of the store.
    """

    def __init__(self, url: str, *, settings: Settings, losses: Losses) -> None:
        self._link = Link(url, settings=settings, is_read_only=True, losses=losses)

    def now_s(self) -> float:
        """See ``Rows.now_s``. The clocks of machines differ, so the clock of the server counts."""
        return float(self._link.read(_NOW)[0][0])

    def find(self, query: RowQuery) -> list[tuple[Any, ...]]:
        """See ``Rows.find``."""
        text = build_query(query)
        return list(self._link.run_on(lambda connection: connection.execute(text, is_synced=True).rows))

    def tally(self, table: Table) -> tuple[int, int]:
        """See ``Rows.tally``."""
        ((count, versions),) = self._link.read(tally_statement(table))
        return int(count), int(versions)

    def close(self) -> None:
        """See ``Rows.close``."""
        self._link.close()


def delete_expired(
    connection: Connection, older_than_s: float, *, changes_older_than_s: float, excess: int, limit: int
) -> int:
    """Delete expired work and old changes, some rows in each transaction; return the number of rows."""

    def find(query: RowQuery) -> list[tuple[Any, ...]]:
        return list(connection.execute(build_query(query), is_synced=True).rows)

    expired = find_expired(find, older_than_s, limit=limit)
    expired += find_old_changes(find, changes_older_than_s, excess=excess, limit=limit)
    for table, keys in expired:
        delete_by_key(connection, table.name, columns=table.key[:1], keys=keys)
    return sum(len(keys) for _, keys in expired)


def delete_by_key(connection: Connection, table: str, *, columns: tuple[str, ...], keys: list[Any]) -> None:
    """Delete rows, some in each transaction: a node of a cluster applies a transaction as a whole."""
    for first in range(0, len(keys), _DELETED_AT_ONCE):
        some = keys[first : first + _DELETED_AT_ONCE]
        connection.execute(f"DELETE FROM {table} WHERE {key_condition(columns, some)}")  # noqa: S608  # our names


def build_query(query: RowQuery) -> str:
    """Return the statement of a query."""
    subset = query.subset
    if subset is not None:
        query = query._replace(subset=subset._replace(text=_SUBSETS.get(subset.text, subset.text)))
    return statement(query, _condition)


def _condition(condition: Condition) -> str:
    operator = "IN" if condition.operator == "in" else condition.operator
    return f"{condition.column} {operator} {literal(condition.value)}"
