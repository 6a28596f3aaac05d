"""Connections to one of Nova's databases, with time limits, and their transactions."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.sql import TableClause

from roost.compat.upstream.sql_drivers import (
    database_kind,
    describe_missing_driver,
    driver_url,
    sqlite_creator,
    sqlite_path,
)
from roost.errors import BadSettings, Unavailable, first_line

# A server that disappears without closing connections is detected after half a minute, not after hours.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
_CONNECT_MIN_S = 2  # libpq's minimum
# oslo.db reads these from a URL; SQLAlchemy would look for plug-ins of these names.
_OSLO_KEYS = ("plugin",)


class DatabaseLink:
    """One of Nova's databases. It connects on first use, and keeps one connection open.

    Args:
        url: URL as in nova.conf, with any driver.
        subject: name of the database in messages, such as "the API database".
        timeout_s: limit of a connection attempt, and of each answer, in seconds.
    """

    def __init__(self, url: str, *, subject: str, timeout_s: float) -> None:
        self.url, self._subject, self._timeout_s = url, subject, timeout_s
        self._engine: sqlalchemy.Engine | None = None
        self._writer: sqlalchemy.Engine | None = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a connection in a read-only transaction: every statement reads the same moment.

        Raises:
            Unavailable: the database does not answer, or refuses.
            BadSettings: the URL is invalid, or its driver is not installed.
        """
        with self._report_problems("read"):
            if self._engine is None:
                self._engine = self._open("ro")
            with _connect(self._engine) as connection:
                self._begin(connection)
                yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yield a connection in a transaction, and commit it.

        Raises:
            IntegrityError: a row exists; catch it inside.
            Unavailable: the database does not answer, or refuses.
            BadSettings: the URL is invalid, or its driver is not installed.
        """
        with self._report_problems("written"):
            if self._writer is None:
                self._writer = self._open("rw")
            with _connect(self._writer) as connection:
                if connection.dialect.name == "sqlite":
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                elif connection.dialect.name == "postgresql":
                    self._limit_statements(connection)
                yield connection
                connection.commit()

    def close(self) -> None:
        """Close the connections; the next use connects again."""
        for engine in filter(None, (self._engine, self._writer)):
            engine.dispose()
        self._engine = self._writer = None

    def _open(self, mode: str) -> sqlalchemy.Engine:
        kind = database_kind(self.url)
        # A connection that the server closed meanwhile is replaced without an error.
        more: dict[str, Any] = {"pool_size": 1, "max_overflow": 1, "pool_timeout": self._timeout_s}
        if kind == "sqlite":
            path = sqlite_path(self.url)
            if not path.is_file():
                raise Unavailable(f"{self._subject} cannot be read: {path} is not a file")
            creator = sqlite_creator(path, "ro" if mode == "ro" else "rw", timeout_s=self._timeout_s)
            return sqlalchemy.create_engine("sqlite://", creator=creator, poolclass=sqlalchemy.pool.QueuePool, **more)
        url = make_url(driver_url(self.url)).difference_update_query(_OSLO_KEYS)
        return sqlalchemy.create_engine(
            url,
            isolation_level="REPEATABLE READ" if mode == "ro" else "READ COMMITTED",
            pool_pre_ping=True,
            connect_args=self._connect_options(url.get_backend_name()),
            **more,
        )

    def _connect_options(self, backend: str) -> dict[str, Any]:
        seconds = max(math.ceil(self._timeout_s), 1)
        if backend == "mysql":
            return {"connect_timeout": seconds, "read_timeout": seconds, "write_timeout": seconds}
        return {
            "connect_timeout": max(seconds, _CONNECT_MIN_S),
            "tcp_user_timeout": int(self._timeout_s * 1000),
            # A connection pooler deals out server connections, which do not have each other's prepared statements.
            "prepare_threshold": None,
            **_KEEPALIVE,
        }

    def _begin(self, connection: Connection) -> None:
        name = connection.dialect.name
        if name == "sqlite":
            connection.exec_driver_sql("BEGIN")
        elif name == "postgresql":
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            self._limit_statements(connection)
        else:
            connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def _limit_statements(self, connection: Connection) -> None:
        """Limit the time of each statement in a transaction of PostgreSQL, the wait for a lock included."""
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(self._timeout_s * 1000)}")

    @contextmanager
    def _report_problems(self, act: str) -> Iterator[None]:
        try:
            yield
        except ModuleNotFoundError as error:
            raise BadSettings(self._subject, describe_missing_driver(self.url, error)) from None
        except NoSuchModuleError:
            kind = database_kind(self.url)
            raise BadSettings(self._subject, f"a database of the kind {kind!r} cannot be read") from None
        except (DBAPIError, sqlite3.Error, PoolTimeoutError) as error:
            # The chain has the statement and the connection, so it stays out of messages.
            raise Unavailable(f"{self._subject} cannot be {act}: {_cause(error)}") from None
        except (ArgumentError, _BadOption):
            # The text of this error may contain the URL. Drivers refuse unknown options with a TypeError.
            raise BadSettings(self._subject, "its URL, or an option in it, is invalid") from None
        except SQLAlchemyError as error:
            raise Unavailable(f"{self._subject} cannot be {act}: {type(error).__name__}") from None


def change_mark(connection: Connection, *tables: TableClause) -> tuple[object, ...]:
    """Return values that change with most changes of small tables."""
    marks: list[object] = []
    for each in tables:
        times = (func.max(each.c.created_at), func.max(each.c.updated_at))
        marks += connection.execute(select(func.count(), func.max(each.c.id), *times).select_from(each)).one()
    return tuple(marks)


def moment_of(seconds: float) -> datetime:
    """Return a time as Nova stores it: in UTC, without a zone."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def seconds_of(moment: datetime | None) -> float | None:
    """Return a stored time in seconds since the epoch."""
    return None if moment is None else moment.replace(tzinfo=UTC).timestamp()


class _BadOption(Exception):  # never leaves this module
    """The driver does not know an option of the URL."""


def _connect(engine: sqlalchemy.Engine) -> Connection:
    try:
        return engine.connect()
    except TypeError as error:
        raise _BadOption from error


def _cause(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    # The drivers of MySQL give the number of the error and its text.
    if len(cause.args) > 1 and isinstance(cause.args[1], str):
        return cause.args[1]
    return first_line(cause)
