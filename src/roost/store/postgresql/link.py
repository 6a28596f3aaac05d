"""A connection to PostgreSQL that reconnects after a loss, and the translation of its errors."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from roost.errors import (
    BadSettings,
    RoostError,
    StoreBroken,
    StoreCorrupt,
    StoreGone,
    StoreMissing,
    Unavailable,
    first_line,
)
from roost.model.settings.roost_settings import Store as Settings
from roost.store.postgresql.arrays import adapt
from roost.store.postgresql.connection import LABEL, READ_ONLY, Connection, DeadlinePassed, is_fatal, state_of
from roost.store.rules.schema import READABLE_FROM, SCHEMA_VERSION, check_version
from roost.store.servers.lost_hosts import SILENT_HOSTS, Losses
from roost.store.servers.server_link import History, ServerLink
from roost.store.servers.url_ports import check_port

DEFAULTS = Settings()
# The state of a process is valid as long as the history of the database is the same. A restore ends all connections and
# changes the epoch. A failover changes the timeline, and may lose changes.
# pg_control_checkpoint() would return the old timeline until the first checkpoint.
HISTORY = """
SELECT coalesce((SELECT next FROM sequence WHERE kind = 'epoch'), 0)::bigint,
       substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"""
# The timeout is for all hosts of a URL together, but at least two seconds per host, the minimum of libpq. It is less
# than the default of ``wait_s``, so at least one attempt fits into that wait.
_CONNECT_TIMEOUT_S = 4
_CONNECT_TIMEOUT_MIN_S = 2
# Client and server detect a vanished machine after half a minute, rather than after hours as by default. The server
# then releases the locks of the client.
_KEEPALIVE = {"tcp_user_timeout": 30_000, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
_SERVER_KEEPALIVE = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4; "
    "SET idle_in_transaction_session_timeout = '60s'"
)
# The server ends its waits for a lock, or for the end of another process, before the deadline of this client. So the
# error names the reason, and the connection stays usable.
_SERVER_SHARE = 0.8
_END_TIMEOUT_MS = 5000
# All statements find their rows by key, regardless of statistics, and are planned once: planning the statement of a
# claim takes longer than running it. A ``statement_timeout`` would end the wait for a standby with success, so there is
# none.
_OPTIONS = (
    "SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_mergejoin = off; "
    "SET enable_seqscan = off; SET jit = off; SET statement_timeout = 0"
)
# Each link has its own name, which identifies all server processes of its connections.
_END_PREVIOUS = """
SELECT count(*) FILTER (WHERE NOT pg_terminate_backend(pid, %s)) FROM pg_stat_activity
WHERE application_name = %s AND pid <> pg_backend_pid()"""
# Removes the name of a connection at its end: the server may list it for a moment longer.
SIGN_OFF = "SET application_name = 'roost'"
_CONFIRM_MIN_S = 0.5
# An unprivileged role sees that a standby exists, but not its state.
_UNUSED_STANDBYS = """
SELECT count(*) FROM pg_stat_replication
WHERE coalesce(state, 'streaming') = 'streaming' AND current_setting('synchronous_standby_names') = ''"""
_OWNER_ADVICE = "make the role in store.url the owner of the database with ALTER DATABASE … OWNER TO …"
READ_ONLY_TEXT = f"{LABEL} is read-only; if it is a standby, name all servers in store.url"
_QUOTED = re.compile(r'"[^"]*"')
# Neither libpq nor psycopg has a code for errors of a connection attempt.
_INVALID = re.compile(r"connection is bad: (invalid .*)")
_ABSENT = re.compile(r'(database ".*" does not exist)')
_RACES = (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)


class ConnectionLost(Exception):  # never leaves the store
    """The connection was lost, or its last commit was not confirmed: the commit may be durable or not.

    Args:
        state: the SQLSTATE of the error; empty: it has none.
        is_late: whether the deadline of the statement passed.
    """

    def __init__(self, state: str = "", *, is_late: bool = False) -> None:
        self.is_read_only = state == READ_ONLY
        self.is_late = is_late
        super().__init__(f"the connection to PostgreSQL was lost ({state or 'no answer'})")


class CommitUnconfirmed(StoreGone):
    """A commit is on the primary, but no synchronous standby has confirmed it."""

    def __init__(self) -> None:
        super().__init__(
            "PostgreSQL: no synchronous standby confirms commits: the last one may be lost with the primary"
        )


class Link(ServerLink[Connection]):
    """See ``ServerLink``.

    Args:
        url: a URL of libpq.
        settings, is_read_only, process, losses: see ``ServerLink``.
        role: the purpose of a connection; empty: the main one of a process that writes. It is part of the name.
    """

    def __init__(
        self,
        url: str,
        *,
        settings: Settings = DEFAULTS,
        is_read_only: bool = False,
        role: str = "",
        process: int | None = None,
        losses: Losses | None = None,
    ) -> None:
        super().__init__(settings=settings, is_read_only=is_read_only, process=process, losses=losses)
        self._url = url
        self._server_ms = int(settings.deadline_s * _SERVER_SHARE * 1000)
        self._name = f"roost {role} {self.process:016x}" if role else f"roost {self.process:016x}"
        self._connection = self._connect()

    @property
    def is_open(self) -> bool:
        """See ``ServerLink``."""
        return not self._connection.closed

    def _reconnect(self) -> tuple[Connection, History]:
        connection = self._connect()
        try:
            with translate_errors():  # The queries wait for a running restore, which may end this connection, too.
                self._end_previous(connection)
                row = connection.execute(HISTORY).fetchone()
                oldest = connection.execute(READABLE_FROM).fetchone()
            # An upgrade does not wait for a process without a connection.
            oldest_text = "" if oldest is None else str(oldest[0])
            check_version(SCHEMA_VERSION, LABEL, readable_from=oldest_text)
        except BaseException:
            connection.close()
            raise
        assert row is not None, "a SELECT without FROM has a row"
        return connection, History(*row)

    def _end_previous(self, connection: Connection) -> None:
        """End all server processes of previous connections of this link.

        Then the outcome of their last statements is final: a commit is visible now, or never.

        Raises:
            StoreGone: a process does not end.
        """
        row = connection.execute(_END_PREVIOUS, (min(_END_TIMEOUT_MS, self._server_ms), self._name)).fetchone()
        if row is None or row[0]:
            raise StoreGone("PostgreSQL: the server process of a previous connection does not end")

    @contextmanager
    def use_connection(self, *, is_any_timeline: bool = False, deadline_s: float | None = None) -> Iterator[Connection]:
        """Yield the connection, and translate its errors.

        Args:
            is_any_timeline: whether to ignore a failover.
            deadline_s: of each statement; None: the deadline of the settings.

        Raises:
            ConnectionLost: the connection broke meanwhile, or a commit on it was not confirmed.
        """
        connection = self._open_connection() if is_any_timeline else self.connection
        connection.is_unconfirmed = False
        connection.deadline_s = self._settings.deadline_s if deadline_s is None else deadline_s
        try:
            with translate_errors():
                yield connection
        except BaseException as error:
            state = state_of(error)
            if is_fatal(state):
                connection.close()
            if connection.closed and isinstance(error, (psycopg.Error, Unavailable)):
                self.losses.note()
                raise ConnectionLost(state, is_late=isinstance(error.__cause__, DeadlinePassed)) from error
            if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                connection.rollback()
            raise
        if connection.is_unconfirmed:
            raise ConnectionLost

    def read(
        self, text: str, values: Sequence[object], *, is_any_timeline: bool = False, deadline_s: float | None = None
    ) -> list[Any]:
        """Return the rows of a statement; retry it once if the connection was lost.

        Args:
            text: the statement.
            values: its parameters.
            is_any_timeline, deadline_s: as for ``use_connection``.

        Raises:
            StoreGone: the connection was lost again, or cannot be reopened, or no answer came before the deadline.
        """
        return self.read_on(lambda _: (text, values), is_any_timeline=is_any_timeline, deadline_s=deadline_s)

    def read_on(
        self,
        statement_of: Callable[[Connection], tuple[str, Sequence[object]]],
        *,
        is_any_timeline: bool = False,
        deadline_s: float | None = None,
    ) -> list[Any]:
        """Return the rows of a statement for the current connection; see ``read``.

        Args:
            statement_of: returns the statement and its parameters.
            is_any_timeline, deadline_s: as for ``use_connection``.
        """
        for is_second in (False, True):
            try:
                with self.use_connection(is_any_timeline=is_any_timeline, deadline_s=deadline_s) as connection:
                    text, values = statement_of(connection)
                    return connection.execute(text, values, prepare=True, binary=True).fetchall()
            except ConnectionLost as error:
                if error.is_late:  # The client has waited long enough.
                    raise StoreGone(str(error.__cause__)) from error
                if is_second and error.is_read_only:
                    raise StoreBroken(READ_ONLY_TEXT) from error
        raise StoreGone("PostgreSQL lost the connection twice: retry later")

    def confirm(self) -> None:
        """Make an empty commit, and wait until it is confirmed, and with it all earlier commits.

        A standby confirms the log in order, so a standby with the last commit has all earlier ones.

        Raises:
            CommitUnconfirmed: there is no confirmation within ``wait_s``.
        """
        try:
            wait_s = max(self._settings.wait_s, _CONFIRM_MIN_S)
            with self.use_connection(is_any_timeline=True, deadline_s=wait_s) as connection:
                connection.execute("SELECT pg_logical_emit_message(true, 'roost', '')")
        except ConnectionLost:
            with suppress(Unavailable):
                self._open_connection()  # Reconnecting ends the server process that still waits.
            raise CommitUnconfirmed from None

    def count_unused_standbys(self) -> int:
        """Return the number of attached standbys if no commit waits for any of them, else 0."""
        return int(self.read(_UNUSED_STANDBYS, ())[0][0])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _connect(self) -> Connection:
        connection = connect(
            self._url,
            application_name=self._name,
            deadline_s=self._settings.deadline_s,
            wait_s=self._settings.wait_s,
        )
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: Connection) -> None:
        with translate_errors():
            if self._settings.pooler == "none":
                _refuse_pooler(connection)
            connection.execute(
                f"{_OPTIONS}; {_SERVER_KEEPALIVE}; SET lock_timeout = {self._server_ms}; "
                # Not every pooler forwards the name of the connection.
                f"SET application_name = '{self._name}'"
            )
            if self._is_read_only:
                connection.execute("SET default_transaction_read_only = on")


def _refuse_pooler(connection: Connection) -> None:
    """Refuse a connection to a pooler, which reports an invented server process to its clients.

    Raises:
        StoreBroken: the connection leads to a pooler.
    """
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row != (connection.info.backend_pid,):
        raise StoreBroken(
            "store.url leads to a connection pooler: use the address of the PostgreSQL server, or set store.pooler to "
            "session if the pooler works by session; pools by transaction or statement do not work"
        )


def connect(
    url: str,
    *,
    application_name: str = "roost",
    deadline_s: float = DEFAULTS.bulk_deadline_s,
    wait_s: float = DEFAULTS.wait_s,
) -> Connection:
    """Connect in autocommit mode, to the first host that answers and takes writes.

    Args:
        url: a URL of libpq.
        application_name: the name of the client at the server.
        deadline_s: of each statement.
        wait_s: approximate limit of the attempts at all hosts.

    Raises:
        BadSettings: the URL is malformed.
        StoreMissing: the database does not exist.
        StoreGone: the server does not answer, or refuses access.
    """
    parameters = read_url(url)
    places = _places_of(parameters)
    # Choose the writable server. Otherwise libpq connects to the first server that answers, maybe a standby.
    several = {"target_session_attrs": "read-write"} if len(places) > 1 else {}
    options = {**_KEEPALIVE, **several, **parameters, "application_name": application_name}
    options["connect_timeout"] = max(_CONNECT_TIMEOUT_MIN_S, int(min(_CONNECT_TIMEOUT_S, wait_s) / len(places)))
    connection = _connect_first(options, places)
    connection.deadline_s = deadline_s
    connection.add_notice_handler(connection.check_notice)
    adapt(connection)
    return connection


def _connect_first(options: dict[str, Any], places: Sequence[dict[str, str]]) -> Connection:
    """Connect to the first host that answers and takes writes, silent ones last; the first error is raised."""
    failures = list[psycopg.Error]()
    for place in SILENT_HOSTS.order(places, address=str):
        try:
            connection = Connection.connect(make_conninfo("", **{**options, **place}), autocommit=True)
        except psycopg.Error as error:
            failures.append(error)
            if isinstance(error, errors.ConnectionTimeout):
                SILENT_HOSTS.note(str(place))
            continue
        SILENT_HOSTS.forget(str(place))
        return connection
    raise connection_error(failures[0]) from None


def _places_of(parameters: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the parameters of each host of a URL; one without any if they do not fit together."""
    lists = {name: str(parameters[name]).split(",") for name in ("host", "hostaddr", "port") if parameters.get(name)}
    count = max(map(len, lists.values()), default=1)
    if len(lists.get("port", ())) == 1:
        lists["port"] *= count
    if any(len(values) != count for values in lists.values()):
        return [{}]  # libpq explains the problem.
    return [{name: values[at] for name, values in lists.items()} for at in range(count)]


def read_url(url: str) -> dict[str, Any]:
    """Return the parameters of a URL.

    Raises:
        BadSettings: it is malformed.
    """
    try:
        parameters: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq quotes a part of the URL, maybe of its password.
        raise BadSettings("store.url", f"is malformed: {_QUOTED.sub('…', first_line(error))}") from None
    for port in str(parameters.get("port", "")).split(","):
        if port:
            check_port(port)
    return parameters


def connection_error(error: psycopg.Error) -> RoostError:
    """Return the error of Roost for a failed attempt to connect."""
    text = str(error)
    if (invalid := _INVALID.search(text)) is not None:
        return BadSettings("store.url", f"is malformed: {invalid[1]}")
    if (absent := _ABSENT.search(text)) is not None:
        return StoreMissing(f"PostgreSQL: {absent[1]}; correct store.url, or create the database with createdb")
    return StoreGone(f"PostgreSQL: {first_line(error)}")


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate errors of PostgreSQL to errors of Roost, except those of lost races."""
    try:
        yield
    except _RACES:
        raise
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise StoreBroken(f"PostgreSQL has no space left: nothing was written ({first_line(error)})") from error
    except errors.ReadOnlySqlTransaction as error:
        raise StoreBroken(READ_ONLY_TEXT) from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise StoreCorrupt(f"{LABEL} is corrupt: {first_line(error)}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreGone(f"PostgreSQL: {first_line(error)}") from error
    except errors.InsufficientPrivilege as error:
        raise StoreBroken(f"PostgreSQL: {first_line(error)}; {_OWNER_ADVICE}") from error
    except psycopg.ProgrammingError as error:
        raise StoreBroken(f"PostgreSQL: {first_line(error)}") from error
