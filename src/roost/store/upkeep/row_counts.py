"""Counts of a database for monitoring.

Each function opens a connection of its own, so servers can keep running.
"""

import msgspec

from roost.store.backends import database_at

_STATUSES = "SELECT status, count(*) FROM instance_status GROUP BY status"
# These conditions equal those of partial indexes, so ended rows are not read.
_OPERATIONS = "SELECT kind, count(*), min(created_at_s) FROM operation WHERE outcome = '' GROUP BY kind"
# The second condition is that of the partial index by time.
_FAILED = "SELECT count(*) FROM operation WHERE outcome = 'failed' AND outcome <> '' AND changed_at_s >= "
_ORDERS = "SELECT state, count(*) FROM orders WHERE state IN ('waiting', 'taken') GROUP BY state"
_MIGRATIONS = """
SELECT kind, status, count(*) FROM migration WHERE status IN ('moving', 'finished', 'left', 'reverting')
GROUP BY kind, status"""
_AGENTS = "SELECT state, count(*) FROM agent GROUP BY state"
_REPORTING = "SELECT count(*) FROM agent WHERE state <> 'gone' AND heard_at_s >= "
_EVIDENCE = "SELECT count(*), coalesce(sum(length(body)), 0) FROM decision"
_UPKEEP = "SELECT name, at_s, findings, size_bytes FROM upkeep"


class Upkeep(msgspec.Struct, frozen=True, kw_only=True):
    """The last audit or backup."""

    at_s: float
    findings: int = 0  # of an audit
    size_bytes: int = 0  # of a backup


class OpenOperations(msgspec.Struct, frozen=True, kw_only=True):
    """The open operations of one kind."""

    count: int
    oldest_s: float  # time of the request of the oldest, in seconds since the epoch


class DatabaseCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of rows of a database."""

    instances: dict[str, int]  # by status
    operations: dict[str, OpenOperations]  # open ones, by kind
    orders: dict[str, int]  # without an answer, by state
    migrations: dict[tuple[str, str], int]  # in progress, by kind and status
    agents: dict[str, int]  # by state
    agents_reporting: int
    size_bytes: int
    upkeep: dict[str, Upkeep]  # by name
    failures: int = 0  # recent ones


def count_database(url: str, *, contact_since_s: float, failed_since_s: float | None = None) -> DatabaseCounts:
    """Count the rows of a database.

    Args:
        url: URL or path.
        contact_since_s: count the agents with a contact since this time, in seconds since the epoch.
        failed_since_s: count the operations that failed since this time; None: none.

    Raises:
        Unavailable: it cannot be read.
    """
    database = database_at(url)
    with database.read_query() as query:
        return DatabaseCounts(
            instances=dict(query(_STATUSES)),
            operations={kind: OpenOperations(count=count, oldest_s=at_s) for kind, count, at_s in query(_OPERATIONS)},
            orders=dict(query(_ORDERS)),
            migrations={(kind, status): count for kind, status, count in query(_MIGRATIONS)},
            agents=dict(query(_AGENTS)),
            agents_reporting=next(iter(query(f"{_REPORTING}{contact_since_s:.3f}")))[0],
            size_bytes=database.size_bytes(query),
            failures=0 if failed_since_s is None else next(iter(query(f"{_FAILED}{failed_since_s:.3f}")))[0],
            upkeep={
                name: Upkeep(at_s=at_s, findings=findings, size_bytes=size)
                for name, at_s, findings, size in query(_UPKEEP)
            },
        )


def count_evidence(url: str) -> tuple[int, int]:
    """Return the number of stored decisions, and their bytes. This reads the whole table.

    Raises:
        Unavailable: the database cannot be read.
    """
    with database_at(url).read_query() as query:
        count, size = next(iter(query(_EVIDENCE)))
    return int(count), int(size)
