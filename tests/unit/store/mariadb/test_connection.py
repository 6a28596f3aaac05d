"""A node of a cluster gets one statement a round trip, and an answer that ends in the middle loses the connection."""

import struct

import pymysql
import pytest

from roost.store.mariadb.connection import Connection, Result, Server, is_fatal

TEXTS = ["START TRANSACTION", "UPDATE one SET n = 1", "COMMIT"]


class Recorder(Connection):
    """A connection that records its round trips."""

    def __init__(self, *, is_cluster):
        self.server = Server("one", is_cluster=is_cluster, is_read_only=False, packet_bytes=2**24)
        self.round_trips = []

    def execute(self, text, *, is_synced=False):
        """Record the statement."""
        self.round_trips.append([text])
        return Result((), 0, 0)

    def _run_packet(self, texts):
        self.round_trips.append(list(texts))
        return [Result((), 0, 0) for _ in texts]

    def __del__(self):
        """It has no socket to close."""


@pytest.mark.parametrize(
    ("is_cluster", "round_trips"), [(False, [TEXTS]), (True, [[text] for text in TEXTS])], ids=["server", "cluster"]
)
def test_statements_share_a_round_trip_on_a_single_server_only(is_cluster, round_trips):
    connection = Recorder(is_cluster=is_cluster)
    assert len(connection.run(iter(TEXTS))) == len(TEXTS)
    assert connection.round_trips == round_trips


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (struct.error("unpack_from requires a buffer of at least 9 bytes"), True),
        (pymysql.err.InternalError("Packet sequence number wrong - got 3 expected 1"), True),
        (pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query"), True),
        (pymysql.err.OperationalError(1213, "Deadlock found when trying to get lock"), False),
        (pymysql.err.InternalError(1025, "Error on rename"), False),
        (ValueError("another error"), False),
    ],
)
def test_errors_that_make_a_connection_unusable(error, expected):
    assert is_fatal(error) is expected
