"""One connection to PostgreSQL: made, lost, made again; and what its errors mean."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from roost.errors import StoreBroken, StoreGone, StoreReplaced, Unavailable, first_line
from roost.model.settings.roost_settings import Store as Settings
from roost.observe import log, metrics
from roost.store.postgresql.arrays import adapt
from roost.store.postgresql.connection import READ_ONLY, Connection, DeadlinePassed, is_last, state_of

Result = TypeVar("Result")
DEFAULTS = Settings()
# What this process knows holds as long as this does: a restore ends all connections and changes the epoch; a failover
# does so with the timeline, since the new primary gives out transaction numbers again that the old one gave out.
# pg_control_checkpoint() would name the old timeline until the first checkpoint.
HISTORY = """
SELECT coalesce((SELECT next FROM sequence WHERE kind = 'epoch'), 0)::bigint,
       substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"""
# For all hosts of a URL together, but two seconds for each: libpq waits no shorter. Less than ``wait_s`` by default, so
# that an attempt fits in.
_CONNECT_TIMEOUT_S = 4
_CONNECT_TIMEOUT_MIN_S = 2
# A machine that vanishes without a word is noticed after half a minute, here and by the server, which then frees what
# its process had locked; operating systems wait for hours.
_ALIVE = {"tcp_user_timeout": 30_000, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
_SERVER_ALIVE = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4; "
    "SET idle_in_transaction_session_timeout = '60s'"
)
# What the server itself waits for, a lock or the end of another process, ends before the deadline here: then the error
# says what was waited for, and the connection is kept.
_SERVER_PART = 0.8
_FINISH_MS = 5000
_PAUSE_S = 0.1
# All statements find their rows by key, whatever the statistics of the moment say, and are planned once:
# planning a claim's statement takes longer than running it. A timeout of the server would end the wait for a standby
# with success.
_OPTIONS = (
    "SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_mergejoin = off; "
    "SET enable_seqscan = off; SET jit = off; SET statement_timeout = 0"
)
# Under a name of its own a link finds all processes that ever served it.
_END_FORMER = """
SELECT count(*) FILTER (WHERE NOT pg_terminate_backend(pid, %s)) FROM pg_stat_activity
WHERE application_name = %s AND pid <> pg_backend_pid()"""
_CONFIRM_MIN_S = 0.5
# A role that may not see more sees that there is a standby, and not its state.
_UNUSED_STANDBYS = """
SELECT count(*) FROM pg_stat_replication
WHERE coalesce(state, 'streaming') = 'streaming' AND current_setting('synchronous_standby_names') = ''"""
READ_ONLY_TEXT = "the PostgreSQL database is read-only"
_RACES = (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)


class Lost(Exception):  # never leaves the store
    """The connection was lost, or its last commit was not confirmed: that may last or not.

    Args:
        state: the SQLSTATE of the error that said so; empty: there was none.
        is_late: whether the deadline of the statement passed.
    """

    def __init__(self, state: str = "", *, is_late: bool = False) -> None:
        self.is_read_only = state == READ_ONLY
        self.is_late = is_late
        super().__init__(f"the connection to PostgreSQL was lost ({state or 'no answer'})")


class Unconfirmed(StoreGone):
    """A commit is on the primary, and no synchronous standby has confirmed it."""

    def __init__(self) -> None:
        super().__init__(
            "PostgreSQL: no synchronous standby confirms commits: the last one may be lost with the primary"
        )


class Restored(StoreReplaced):
    """The database was restored from a backup since this process read it."""

    def __init__(self) -> None:
        super().__init__("the database was restored from a backup, and is read again: try again")


class FailedOver(StoreReplaced):
    """Another server took over since this process read the database."""

    def __init__(self) -> None:
        super().__init__("another database server took over, and the database is read again: try again")


class History(NamedTuple):
    """Which course of events a database is on: numbers of one course mean nothing on another."""

    epoch: int  # another one after each restore
    timeline: str  # changes with each failover, and not only upwards


class Link:
    """The connection of one store."""

    def __init__(self, url: str, *, settings: Settings = DEFAULTS, is_read_only: bool = False) -> None:
        self._url = url
        self._settings = settings
        self._server_ms = int(settings.deadline_s * _SERVER_PART * 1000)
        self._is_read_only = is_read_only
        self._name = f"roost {secrets.token_hex(8)}"
        # Of what this process knows of the database; None: it knows nothing yet.
        self.history: History | None = None
        self._failed_over: History | None = None  # to what, until everything is read again
        self._connection = self._connect()

    @property
    def is_open(self) -> bool:
        """Whether the connection was not lost, as far as is known."""
        return not self._connection.closed

    @property
    def connection(self) -> Connection:
        """The connection, made again if it was lost.

        Raises:
            Unavailable: the server did not come back within some seconds.
            Restored: it did with a restored database.
            FailedOver: another server took over.
        """
        connection = self._any_timeline()
        if self._failed_over is not None:
            raise FailedOver
        return connection

    def read_again(self, history: History) -> None:
        """Note the history of everything that was just read."""
        self.history, self._failed_over = history, None

    def _any_timeline(self) -> Connection:
        """Return the connection, whichever server took over."""
        if self._connection.closed:
            connection, history = insist(self._reconnect, wait_s=self._settings.wait_s)
            known = self._failed_over or self.history
            if known is not None and known.epoch != history.epoch:
                connection.close()
                raise Restored
            if known is not None and known.timeline != history.timeline:
                metrics.TIMELINE_CHANGES.inc()
                log.event("database_failed_over", before=known.timeline, after=history.timeline)
                self._failed_over = history
            self._connection = connection
        return self._connection

    def _reconnect(self) -> tuple[Connection, History]:
        connection = self._connect()
        try:
            with translate_errors():  # A restore that is under way is waited for here, and may end this connection too.
                self._end_former(connection)
                row = connection.execute(HISTORY).fetchone()
        except BaseException:
            connection.close()
            raise
        assert row is not None, "a SELECT without FROM has a row"
        return connection, History(*row)

    def _end_former(self, connection: Connection) -> None:
        """Make sure that no process of the server works for this link any more but that of the new connection.

        What the former one did last is settled then: a commit of it is there, or will never be.

        Raises:
            StoreGone: one does not end.
        """
        row = connection.execute(_END_FORMER, (min(_FINISH_MS, self._server_ms), self._name)).fetchone()
        if row is None or row[0]:
            raise StoreGone("PostgreSQL: a process of the server that served this one does not end")

    @contextmanager
    def lend(self, *, is_any_timeline: bool = False, deadline_s: float | None = None) -> Iterator[Connection]:
        """Give the connection out, with errors explained.

        Args:
            is_any_timeline: whether it does not matter that another server took over.
            deadline_s: of each statement; None: as the settings say.

        Raises:
            Lost: it broke while it was out, or a commit on it was not confirmed.
        """
        connection = self._any_timeline() if is_any_timeline else self.connection
        connection.is_unconfirmed = False
        connection.deadline_s = self._settings.deadline_s if deadline_s is None else deadline_s
        try:
            with translate_errors():
                yield connection
        except BaseException as error:
            state = state_of(error)
            if is_last(state):
                connection.close()
            if connection.closed and isinstance(error, (psycopg.Error, Unavailable)):
                raise Lost(state, is_late=isinstance(error.__cause__, DeadlinePassed)) from error
            if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                connection.rollback()
            raise
        if connection.is_unconfirmed:
            raise Lost

    def read(
        self, text: str, values: Sequence[object], *, is_any_timeline: bool = False, deadline_s: float | None = None
    ) -> list[Any]:
        """Return the rows of a statement; it is made a second time if the connection was lost.

        Args:
            text: of the statement.
            values: its parameters.
            is_any_timeline: as for ``watched``.
            deadline_s: the same.

        Raises:
            StoreGone: it was lost again, or is not made again, or there was no answer until the deadline.
        """
        for is_second in (False, True):
            try:
                with self.lend(is_any_timeline=is_any_timeline, deadline_s=deadline_s) as connection:
                    return connection.execute(text, values, prepare=True, binary=True).fetchall()
            except Lost as error:
                if error.is_late:  # Who waits has waited long enough.
                    raise StoreGone(str(error.__cause__)) from error
                if is_second and error.is_read_only:
                    raise StoreBroken(READ_ONLY_TEXT) from error
        raise StoreGone("PostgreSQL lost the connection twice: retry later")

    def confirm(self) -> None:
        """Wait until everything that was committed before lasts, with its own commit, which changes nothing.

        A standby confirms the log in its order, so it has all earlier commits when it has this one.

        Raises:
            Unconfirmed: it cannot be known within ``wait_s``.
        """
        try:
            wait_s = max(self._settings.wait_s, _CONFIRM_MIN_S)
            with self.lend(is_any_timeline=True, deadline_s=wait_s) as connection:
                connection.execute("SELECT pg_logical_emit_message(true, 'roost', '')")
        except Lost:
            with suppress(Unavailable):
                self._any_timeline()  # It ends the process that waits on.
            raise Unconfirmed from None

    def count_unused_standbys(self) -> int:
        """Return how many standbys are attached where no commit waits for any of them, else 0."""
        return int(self.read(_UNUSED_STANDBYS, ())[0][0])

    def close(self) -> None:
        """End it."""
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
                f"{_OPTIONS}; {_SERVER_ALIVE}; SET lock_timeout = {self._server_ms}; "
                # Not each pooler hands it on.
                f"SET application_name = '{self._name}'"
            )
            if self._is_read_only:
                connection.execute("SET default_transaction_read_only = on")


def _refuse_pooler(connection: Connection) -> None:
    """Refuse a connection that a pooler answers: it invents the process of the server that it names to clients.

    Raises:
        StoreBroken: it is one.
    """
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row != (connection.info.backend_pid,):
        raise StoreBroken(
            "store.url leads to a connection pooler: use the address of the PostgreSQL server, or, if it pools by "
            "session, set store.pooler to session; pools by transaction or statement do not work"
        )


def insist(attempt: Callable[[], Result], *, wait_s: float) -> Result:
    """Return the result of the first attempt to reach the server that succeeds.

    Raises:
        StoreGone: none did within ``wait_s``.
    """
    end_s = time.monotonic() + wait_s
    while True:
        begun_s = time.monotonic()
        try:
            return attempt()
        except StoreGone:
            now_s = time.monotonic()
            if now_s + (now_s - begun_s) > end_s:
                raise  # An attempt that takes as long as this one would end too late.
            time.sleep(_PAUSE_S)


def connect(
    url: str,
    *,
    application_name: str = "roost",
    deadline_s: float = DEFAULTS.bulk_deadline_s,
    wait_s: float = DEFAULTS.wait_s,
) -> Connection:
    """Connect, in autocommit mode.

    Args:
        url: as libpq takes it.
        application_name: as the server shows it.
        deadline_s: of each statement.
        wait_s: of an attempt to connect, about; whole seconds, 2 to 4.

    Raises:
        StoreGone: the server does not answer, or does not let us in.
    """
    try:
        given = conninfo_to_dict(url)
        # Of several servers only one is written to; else libpq takes the first that answers, a standby maybe.
        hosts = str(given.get("host", "")).count(",") + 1
        several = {"target_session_attrs": "read-write"} if hosts > 1 else {}
        connection = Connection.connect(
            make_conninfo("", **{**_ALIVE, **several, **given}),
            autocommit=True,
            connect_timeout=max(_CONNECT_TIMEOUT_MIN_S, int(min(_CONNECT_TIMEOUT_S, wait_s) / hosts)),
            application_name=application_name,
        )
    except psycopg.Error as error:
        # The address may hold a password, and a malformed one is repeated.
        raise StoreGone(f"PostgreSQL: {first_line(error).replace(url, 'store.url')}") from None
    connection.deadline_s = deadline_s
    connection.add_notice_handler(connection.note)
    adapt(connection)
    return connection


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of PostgreSQL into ours, except those that mean a lost race."""
    try:
        yield
    except _RACES:
        raise
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise StoreBroken(f"PostgreSQL has no space left: nothing was written ({first_line(error)})") from error
    except errors.ReadOnlySqlTransaction as error:
        raise StoreBroken(READ_ONLY_TEXT) from error
    except (errors.DataCorrupted, errors.IndexCorrupted) as error:
        raise StoreBroken(f"the PostgreSQL database is corrupt: {first_line(error)}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreGone(f"PostgreSQL: {first_line(error)}") from error
    except psycopg.ProgrammingError as error:
        raise StoreBroken(f"PostgreSQL: {first_line(error)}") from error
