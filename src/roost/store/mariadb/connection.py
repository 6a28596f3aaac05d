"""A connection to MariaDB with a deadline for each answer, and the translation of its errors."""

import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pymysql
import pymysql.connections
from pymysql.constants import CLIENT, CR, ER, FIELD_TYPE
from pymysql.converters import conversions

from roost.errors import BadSettings, StoreBroken, StoreCorrupt, StoreGone, StoreMissing
from roost.store.mariadb.address import Address, Host

_NOT_READY = 1047  # a node of Galera without a majority, or before its state transfer
_KILLED = 1927
_TIMED_OUT = 1969  # max_statement_time
_CHANGED = 1020  # the row changed since it was read
_READ_ONLY = frozenset({1290, 1836})
_LOST = frozenset(
    {
        _NOT_READY,
        _KILLED,
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        CR.CR_CONNECTION_ERROR,
        CR.CR_CONN_HOST_ERROR,
        ER.SERVER_SHUTDOWN,
        ER.QUERY_INTERRUPTED,
        ER.NET_READ_ERROR,
        ER.NET_READ_INTERRUPTED,
        ER.NET_ERROR_ON_WRITE,
        ER.NET_WRITE_INTERRUPTED,
        *_READ_ONLY,
    }
)
_RACES = frozenset({ER.LOCK_DEADLOCK, ER.LOCK_WAIT_TIMEOUT, _CHANGED})
_FULL = frozenset({ER.DISK_FULL, ER.RECORD_FILE_FULL, ER.OUTOFMEMORY, ER.OUT_OF_RESOURCES})
_CORRUPT = frozenset({ER.NOT_KEYFILE, ER.CRASHED_ON_USAGE, ER.CRASHED_ON_REPAIR, 1712, 1877})
_ADVICE = {
    ER.ACCESS_DENIED_ERROR: "correct the user and password in store.url; anonymous users of the server hide user@'%'",
    ER.DBACCESS_DENIED_ERROR: "correct store.url, or give the user all rights on this database with GRANT",
}
LABEL = "the MariaDB database"
READ_ONLY_TEXT = f"{LABEL} is read-only"
_UTF8_BYTES_MAX = 4  # of a character
_KEEPALIVE = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)
# Statements of one packet; small ones share it.
_PACKET_BYTES = 2**20
_CONVERSIONS = {
    **conversions,
    FIELD_TYPE.NEWDECIMAL: lambda text: float(text) if "." in text else int(text),  # of sums and rounded times
}


class ConnectionLost(Exception):  # never leaves the store
    """The connection was lost: the outcome of its last statement is unknown.

    Args:
        code: of the error; 0: it has none.
        is_late: whether the deadline of the answer passed.
    """

    def __init__(self, code: int = 0, *, is_late: bool = False) -> None:
        self.is_read_only = code in _READ_ONLY
        self.is_late = is_late
        super().__init__(f"the connection to MariaDB was lost ({code or 'no answer'})")


class LostRace(StoreGone):
    """Another transaction was faster, on this node or on another: nothing was written.

    Args:
        is_wait: whether the wait for a lock took too long.
    """

    def __init__(self, *, is_wait: bool = False) -> None:
        self.is_wait = is_wait
        reason = "a lock was not released in time" if is_wait else "another transaction was faster"
        super().__init__(f"MariaDB: {reason}: retry later")


class Duplicate(Exception):  # never leaves the store
    """A unique value exists: nothing was written.

    Args:
        key: the name of the index.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


class Result(NamedTuple):
    """The answer to one statement."""

    rows: Sequence[tuple[Any, ...]]
    row_count: int  # found, or deleted
    last_id: int  # the last value of LAST_INSERT_ID


class Server(NamedTuple):
    """The server of a connection."""

    timeline: str  # of a cluster its id, else the address of the server; without blanks
    is_cluster: bool  # whether it is a node of Galera
    is_read_only: bool
    packet_bytes: int


class Connection(pymysql.connections.Connection):  # type: ignore[misc]  # untyped
    """A connection in autocommit mode. If an answer does not come in time, it closes."""

    server = Server("", is_cluster=False, is_read_only=False, packet_bytes=2**24)

    def set_deadline(self, seconds: float) -> None:
        """Set the deadline of each answer."""
        self._read_timeout = self._write_timeout = seconds

    def drop(self) -> None:
        """Close the connection without a goodbye: a lost server would not read it."""
        with suppress(Exception):
            self._force_close()

    def execute(self, text: str, *, is_synced: bool = False) -> Result:
        """Run one statement, or one script; return the rows of its first result.

        Args:
            text: the statement.
            is_synced: whether a node of a cluster first applies all commits that any node has acknowledged.
        """
        if is_synced and self.server.is_cluster:
            text = f"SET STATEMENT wsrep_sync_wait = 1 FOR {text.lstrip()}"
        return self._send(text)[0]

    def run(self, texts: Iterable[str]) -> list[Result]:
        """Run statements, small ones in common round trips; return their results.

        A node of a cluster gets each statement in a round trip of its own. If a commit of another node aborts the
        transaction between two statements of a packet, the node rolls back without an error: the rest of the packet
        then succeeds, even its COMMIT.
        """
        if self.server.is_cluster:
            return [self.execute(text) for text in texts]
        found, packet, size = list[Result](), list[str](), 0
        for text in texts:
            if packet and size + len(text) > _PACKET_BYTES:
                found += self._run_packet(packet)
                packet, size = [], 0
            packet.append(text)
            size += len(text)
        return found + self._run_packet(packet) if packet else found

    def _run_packet(self, texts: Sequence[str]) -> list[Result]:
        return self._send(";\n".join(texts))[: len(texts)]

    def _send(self, text: str) -> list[Result]:
        """Send one packet; return the results of its statements."""
        limit = self.server.packet_bytes
        if len(text) * _UTF8_BYTES_MAX >= limit and (size := len(text.encode())) >= limit:
            raise StoreBroken(f"a statement of {size} bytes exceeds max_allowed_packet of the MariaDB server: raise it")
        with self.cursor() as cursor:
            cursor.execute(text)
            found = [_read_result(cursor)]
            while cursor.nextset():
                found.append(_read_result(cursor))
        return found


def _read_result(cursor: Any) -> Result:
    return Result(cursor.fetchall() or (), cursor.rowcount, cursor.lastrowid or 0)


def open_connection(address: Address, host: Host, *, timeout_s: float) -> Connection:
    """Connect to one host.

    Args:
        timeout_s: of the connection attempt, and of each answer until ``set_deadline``.
    """
    connection = Connection(
        host=host.name,
        port=host.port,
        user=address.user,
        password=address.password,
        database=address.database,
        ssl=address.tls,
        charset="utf8mb4",
        collation="utf8mb4_nopad_bin",
        autocommit=True,
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        write_timeout=timeout_s,
        # Without FOUND_ROWS, an update that changes nothing would count as a failed guard.
        client_flag=CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS,
        conv=_CONVERSIONS,
        defer_connect=True,
    )
    opened = _open_socket(host, timeout_s)
    try:
        connection.connect(opened)
    except BaseException:
        opened.close()
        raise
    return connection


def _open_socket(host: Host, timeout_s: float) -> socket.socket:
    """Connect to a host; the client and the server then notice a vanished peer after half a minute."""
    try:
        if host.socket is None:
            found = socket.create_connection((host.name, host.port), timeout_s)
            for level, option, value in _KEEPALIVE:
                found.setsockopt(level, option, value)
            return found
        found = socket.socket(socket.AF_UNIX)
        try:
            found.settimeout(timeout_s)
            found.connect(host.socket)
        except BaseException:
            found.close()
            raise
    except OSError as error:
        place = host.socket or f"{host.name}:{host.port}"
        raise pymysql.err.OperationalError(CR.CR_CONN_HOST_ERROR, f"no connection to {place}: {error}") from None
    return found


def code_of(error: BaseException) -> int:
    """Return the code of an error of MariaDB, or of its cause; 0: it has none."""
    found = error if isinstance(error, pymysql.Error) else error.__cause__
    return found.args[0] if isinstance(found, pymysql.Error) and found.args and isinstance(found.args[0], int) else 0


def is_fatal(error: BaseException) -> bool:
    """Return whether a connection is unusable after an error."""
    found = error if isinstance(error, pymysql.Error) else error.__cause__
    # The driver cannot read an answer that a node of a cluster ends in the middle.
    is_torn = isinstance(error, struct.error) or (isinstance(found, pymysql.err.InternalError) and not code_of(error))
    return is_torn or isinstance(found, pymysql.err.InterfaceError) or code_of(error) in _LOST


def is_late(error: BaseException) -> bool:
    """Return whether the deadline of an answer passed."""
    found = error if isinstance(error, pymysql.Error) else error.__cause__
    return found is not None and isinstance(found.__context__, TimeoutError)


def text_of(error: pymysql.Error) -> str:
    """Return the message of an error, in one line."""
    return " ".join(str(error.args[-1] if error.args else error).split())


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate errors of MariaDB to ``LostRace``, ``Duplicate``, and errors of Roost."""
    try:
        yield
    except pymysql.Error as error:
        code, text = code_of(error), text_of(error)
        if code in _RACES:
            raise LostRace(is_wait=code == ER.LOCK_WAIT_TIMEOUT) from error
        if code == ER.DUP_ENTRY:
            raise Duplicate(text.rpartition("key ")[2].strip("'\"`´")) from error
        raise roost_error(error) from error


def roost_error(error: pymysql.Error) -> Exception:
    """Return the error of Roost for an error of MariaDB."""
    code, text = code_of(error), text_of(error)
    if code in _READ_ONLY:
        return StoreBroken(READ_ONLY_TEXT)
    if code == ER.BAD_DB_ERROR:
        return StoreMissing(f"MariaDB: {text}; correct store.url, or create the database with CREATE DATABASE")
    if code in _ADVICE:
        return StoreGone(f"MariaDB: {text}; {_ADVICE[code]}")
    if code in _FULL:
        return StoreBroken(f"MariaDB has no space left: nothing was written ({text})")
    if code in _CORRUPT:
        return StoreCorrupt(f"the MariaDB database is corrupt: {text}")
    if isinstance(error, pymysql.err.ProgrammingError | pymysql.err.DataError | pymysql.err.NotSupportedError):
        return StoreBroken(f"MariaDB: {text}")
    if isinstance(error, pymysql.err.OperationalError | pymysql.err.InterfaceError | pymysql.err.InternalError):
        return StoreGone(f"MariaDB: {text}")
    return BadSettings("store.url", text) if code == 0 else StoreBroken(f"MariaDB: {text}")
