"""A connection to MariaDB; after a loss, it is replaced by one to the first host with an answer."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import pymysql

from roost.errors import BadSettings, RoostError, StoreBroken, StoreBusy, StoreGone, StoreMissing, Unavailable
from roost.model.settings.roost_settings import Store as Settings
from roost.store.mariadb.address import Address, Host, read_url
from roost.store.mariadb.connection import (
    LABEL,
    READ_ONLY_TEXT,
    Connection,
    ConnectionLost,
    LostRace,
    Result,
    Server,
    code_of,
    is_fatal,
    is_late,
    open_connection,
    roost_error,
    translate_errors,
)
from roost.store.mariadb.script import fill_in, literal
from roost.store.rules.schema import READABLE_FROM, SCHEMA_VERSION, check_version
from roost.store.servers.lost_hosts import SILENT_HOSTS, Losses
from roost.store.servers.server_link import History, ServerLink

Outcome = TypeVar("Outcome")
DEFAULTS = Settings()
# The value of the row ``epoch`` during a restore of a cluster, which takes several transactions.
RESTORING = -1
EPOCH = "SELECT next FROM sequence WHERE kind = 'epoch'"
# Of one host. The attempts at all hosts together take at most ``wait_s``, but at least two seconds each.
_CONNECT_TIMEOUT_S = 4.0
_CONNECT_TIMEOUT_MIN_S = 2.0
# The server ends its waits for a lock before the deadline of this client, so that the error names the reason.
_SERVER_SHARE = 0.8
_IDLE_S = 60  # of a transaction
_END_TIMEOUT_S = 5
_OLDEST_VERSION = (10, 6)
_RACES_MAX = 5
_OPTIONS = f"""
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO',
    tx_isolation = 'READ-COMMITTED', time_zone = '+00:00', max_statement_time = 0,
    idle_transaction_timeout = {_IDLE_S}"""
_SERVER = """
SELECT @@version, @@read_only, @@max_allowed_packet, CONCAT_WS(':', @@hostname, @@port, @@server_id, @@socket),
    (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_CLUSTER_STATE_UUID'),
    EXISTS (SELECT 1 FROM information_schema.GLOBAL_VARIABLES
            WHERE VARIABLE_NAME = 'WSREP_ON' AND VARIABLE_VALUE = 'ON')
    AND (EXISTS (SELECT 1 FROM information_schema.GLOBAL_STATUS
                 WHERE VARIABLE_NAME = 'WSREP_READY' AND VARIABLE_VALUE <> 'ON')
         OR EXISTS (SELECT 1 FROM information_schema.GLOBAL_VARIABLES
                    WHERE VARIABLE_NAME = 'WSREP_REJECT_QUERIES' AND VARIABLE_VALUE <> 'NONE'))"""
# Each link holds a lock with its own name, so the server knows all its connections. A connection releases it at its
# end, after its transaction.
_LOCK_NAME = "roost {:016x}"


class Link(ServerLink[Connection]):
    """See ``ServerLink``.

    Args:
        url: see ``address``.
        settings, is_read_only, process, losses: see ``ServerLink``.
        role: of a connection beside the main one of the process; empty: the main one.
    """

    def __init__(
        self,
        url: str,
        *,
        settings: Settings = DEFAULTS,
        is_read_only: bool = False,
        process: int | None = None,
        role: str = "",
        losses: Losses | None = None,
    ) -> None:
        super().__init__(settings=settings, is_read_only=is_read_only, process=process, losses=losses)
        self._address = read_url(url)
        self._lock = lock_name(self.process, role)
        self._connection, self._current = self._connect()

    @property
    def is_open(self) -> bool:
        """See ``ServerLink``."""
        return bool(self._connection.open)

    @property
    def epoch(self) -> int:
        """The epoch of the state of this process; without a state, of the database."""
        return (self.history or self._current).epoch

    @contextmanager
    def use_connection(self, *, is_any_timeline: bool = False, deadline_s: float | None = None) -> Iterator[Connection]:
        """Yield the connection, and translate its errors.

        Args:
            is_any_timeline: whether to ignore a failover.
            deadline_s: of each answer; None: the deadline of the settings.

        Raises:
            ConnectionLost: the connection broke meanwhile.
            LostRace, Duplicate: nothing was written.
        """
        connection = self._open_connection() if is_any_timeline else self.connection
        connection.set_deadline(self._settings.deadline_s if deadline_s is None else deadline_s)
        try:
            with translate_errors():
                yield connection
        except BaseException as error:
            if is_fatal(error):
                connection.drop()
                self.losses.note()
                raise ConnectionLost(code_of(error), is_late=is_late(error)) from error
            _roll_back(connection)
            raise

    def read(
        self,
        text: str,
        values: Sequence[object] = (),
        *,
        is_any_timeline: bool = False,
        deadline_s: float | None = None,
    ) -> Sequence[Any]:
        """Return the rows of a query; retry it once if the connection was lost.

        Args:
            text: the query, with ``?`` for each value.
            values: its values.
            is_any_timeline, deadline_s: as for ``use_connection``.

        Raises:
            StoreGone: the connection was lost again, or cannot be reopened, or no answer came before the deadline.
        """
        query = fill_in(text, values)

        def run(connection: Connection) -> Sequence[Any]:
            return connection.execute(query, is_synced=True).rows

        return self.run_on(run, is_any_timeline=is_any_timeline, deadline_s=deadline_s)

    def write(self, text: str, values: Sequence[object] = ()) -> Result:
        """Run one statement, maybe twice; see ``read``."""
        statement = fill_in(text, values)
        return self.run_on(lambda connection: connection.execute(statement))

    def run_on(
        self,
        act: Callable[[Connection], Outcome],
        *,
        is_any_timeline: bool = False,
        deadline_s: float | None = None,
    ) -> Outcome:
        """Return the result of an act on the current connection; repeat it after a lost connection or race.

        Args:
            act: may run twice.
            is_any_timeline, deadline_s: as for ``use_connection``.
        """
        losses, races = 0, 0
        while True:
            try:
                with self.use_connection(is_any_timeline=is_any_timeline, deadline_s=deadline_s) as connection:
                    return act(connection)
            except LostRace as error:
                races += 1
                if error.is_wait or races == _RACES_MAX:
                    raise
            except ConnectionLost as error:
                losses += 1
                if error.is_late:  # The client has waited long enough.
                    raise StoreGone(f"MariaDB: no answer in time ({error.__cause__})") from error
                if losses > 1 and error.is_read_only:
                    raise StoreBroken(READ_ONLY_TEXT) from error
                if losses > 1:
                    raise StoreGone("MariaDB lost the connection twice: retry later") from error

    def close(self) -> None:
        """Close the connection."""
        close_connection(self._connection)

    def _reconnect(self) -> tuple[Connection, History]:
        """See ``ServerLink``."""
        connection, self._current = self._connect()
        return connection, self._current

    def _connect(self) -> tuple[Connection, History]:
        connection = connect_first(self._address, deadline_s=self._settings.deadline_s, wait_s=self._settings.wait_s)
        try:
            with translate_errors():
                if self._is_read_only:
                    connection.execute("SET SESSION TRANSACTION READ ONLY")
                take_name(connection, self._lock)
                history = read_history(connection)
                oldest = connection.execute(READABLE_FROM, is_synced=True).rows
            # An upgrade does not wait for a process without a connection.
            check_version(SCHEMA_VERSION, LABEL, readable_from=str(oldest[0][0]) if oldest else "")
        except BaseException:
            connection.drop()
            raise
        return connection, history


def lock_name(process: int, role: str = "") -> str:
    """Return the name of a link's lock, by which the server knows the connection; see ``Link``."""
    return f"{_LOCK_NAME.format(process)} {role}".rstrip()


def is_connected(column: str) -> str:
    """Return a condition: the process in a column has a main connection to this server."""
    return f"IS_USED_LOCK(CONCAT('roost ', LPAD(LOWER(HEX({column})), 16, '0'))) IS NOT NULL"


def take_name(connection: Connection, name: str) -> None:
    """Take the lock of a link, and end the connection with it: its last statement then has an outcome.

    Raises:
        StoreGone: that connection does not end.
    """
    ((is_taken, holder),) = connection.execute(
        f"SELECT GET_LOCK({literal(name)}, 0), IS_USED_LOCK({literal(name)})"
    ).rows
    if is_taken:
        return
    if holder is not None:
        with suppress(pymysql.Error):  # It may have ended meanwhile.
            connection.execute(f"KILL CONNECTION {holder}")
    connection.set_deadline(_END_TIMEOUT_S * 2)
    ((is_taken,),) = connection.execute(f"SELECT GET_LOCK({literal(name)}, {_END_TIMEOUT_S})").rows
    if not is_taken:
        raise StoreGone("MariaDB: a previous connection does not end")


def read_history(connection: Connection) -> History:
    """Return the history of a database.

    Raises:
        StoreBusy: a restore has not ended.
    """
    rows = connection.execute(EPOCH, is_synced=True).rows
    epoch = rows[0][0] if rows else 0
    if epoch == RESTORING:
        raise StoreBusy("the MariaDB database is being restored; after a failed restore, repeat it with --replace")
    return History(epoch, connection.server.timeline)


def connect(url: str, *, deadline_s: float = DEFAULTS.bulk_deadline_s, wait_s: float = DEFAULTS.wait_s) -> Connection:
    """Connect to the first host with an answer and write access, in autocommit mode.

    Args:
        url: see ``address``.
        deadline_s: of each answer.
        wait_s: approximate limit of the attempts at all hosts.

    Raises:
        BadSettings: the URL is malformed.
        StoreMissing: the database does not exist.
        StoreBroken: the server is not MariaDB, or is too old.
        StoreGone: no server answers, or it refuses access.
    """
    return connect_first(read_url(url), deadline_s=deadline_s, wait_s=wait_s)


def connect_first(address: Address, *, deadline_s: float, wait_s: float) -> Connection:
    """Connect as ``connect`` does, to a parsed URL."""
    timeout_s = max(_CONNECT_TIMEOUT_MIN_S, min(_CONNECT_TIMEOUT_S, wait_s / len(address.hosts)))
    failures = list[RoostError]()
    for host in SILENT_HOSTS.order(address.hosts, address=str):
        try:
            connection = _connect_to(address, host, timeout_s=timeout_s, deadline_s=deadline_s)
        except (Unavailable, StoreMissing) as error:
            failures.append(error)
            continue
        SILENT_HOSTS.forget(str(host))
        if len(address.hosts) == 1 or not connection.server.is_read_only:
            return connection
        close_connection(connection)
        # Another host may become writable soon, so this is worth a retry.
        failures.append(StoreGone(f"MariaDB: {host.name}:{host.port} is read-only"))
    raise failures[0]


def _connect_to(address: Address, host: Host, *, timeout_s: float, deadline_s: float) -> Connection:
    try:
        connection = open_connection(address, host, timeout_s=timeout_s)
    except pymysql.Error as error:
        if is_late(error):
            SILENT_HOSTS.note(str(host))
        raise roost_error(error) from None
    except RuntimeError as error:  # A method of authentication needs a package.
        raise BadSettings(
            "store.url", f"names an account with an unsupported method of authentication: {error}"
        ) from None
    try:
        with translate_errors():
            connection.server = _set_up(connection, deadline_s)
    except BaseException:
        connection.drop()
        raise
    connection.set_deadline(deadline_s)
    return connection


def _set_up(connection: Connection, deadline_s: float) -> Server:
    """Set the options of a connection; return its server."""
    wait_s = max(1, int(deadline_s * _SERVER_SHARE))
    *_, found = connection.run(
        [
            f"{_OPTIONS}, innodb_lock_wait_timeout = {wait_s}, lock_wait_timeout = {wait_s}",
            _SERVER,
        ]
    )
    version, is_read_only, packet_bytes, address, cluster, is_refusing = found.rows[0]
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2])
    if "MariaDB" not in version or numbers < _OLDEST_VERSION:
        raise StoreBroken(f"store.url leads to MySQL or MariaDB {version}: Roost needs MariaDB 10.6 or newer")
    # Such a node still answers queries without tables, so the next host would never be tried.
    if is_refusing:
        raise StoreGone("MariaDB: this node of the cluster has no majority, or is being taken out")
    is_cluster = bool(cluster) and cluster.strip("0-") != ""
    timeline = (cluster if is_cluster else address).replace(" ", "_")
    return Server(timeline, is_cluster, bool(is_read_only), packet_bytes)


def _roll_back(connection: Connection) -> None:
    """Roll back after an error; a connection is unusable if it fails."""
    try:
        connection.execute("ROLLBACK")
    except pymysql.Error:
        connection.drop()


def close_connection(connection: Connection) -> None:
    """Close a connection, open or not."""
    if connection.open:
        with suppress(pymysql.Error):
            connection.close()
