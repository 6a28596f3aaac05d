"""Connections of a plain client, without any code of Roost: to the first node of a list that takes writes."""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import psycopg
import pymysql

# Of each answer. It is far below ``store.deadline_s``, so a hang is noticed sooner than by Roost.
DEADLINE_S = 2.0


class PostgresqlClient:
    """A connection of libpq, which chooses the node.

    Args:
        url: with all nodes.
    """

    def __init__(self, url: str) -> None:
        options = f"target_session_attrs=read-write&connect_timeout={DEADLINE_S:.0f}"
        self._connection = psycopg.connect(f"{url}?{options}", autocommit=True)

    def execute(self, text: str) -> None:
        """Run one statement."""
        with self._deadline():
            self._connection.execute(text.encode())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _deadline(self) -> Iterator[None]:
        """Cut the connection if the block takes too long: libpq itself waits for ever."""
        with closing(socket.socket(fileno=os.dup(self._connection.fileno()))) as own:
            timer = threading.Timer(DEADLINE_S, _shut_down, [own])
            timer.start()
            try:
                yield
            finally:
                timer.cancel()
                timer.join()


class MariadbClient:
    """A connection to the first port with an answer.

    Args:
        ports: of all nodes, on the loopback address.
        database: its name.
    """

    def __init__(self, ports: Sequence[int], database: str) -> None:
        for port in ports[:-1]:
            with suppress(pymysql.Error):
                self._connection = _connect(port, database)
                return
        self._connection = _connect(ports[-1], database)

    def execute(self, text: str) -> None:
        """Run one statement."""
        with self._connection.cursor() as cursor:
            cursor.execute(text)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _connect(port: int, database: str) -> "pymysql.Connection[Any]":
    """Connect in autocommit mode, and read a table: a node without a majority, or that is taken out, refuses."""
    connection = pymysql.connect(
        host="127.0.0.1",
        port=port,
        user="root",
        database=database,
        autocommit=True,
        connect_timeout=DEADLINE_S,
        read_timeout=DEADLINE_S,
        write_timeout=DEADLINE_S,
    )
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM mysql.global_priv")
    except BaseException:
        connection.close()
        raise
    return connection


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):  # It may be closed already.
        connection.shutdown(socket.SHUT_RDWR)
