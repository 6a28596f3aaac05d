"""Locks beyond the end of a transaction: rows with an owner and an end, since session locks hold on one node only."""

import secrets
import time

from roost.errors import StoreBusy
from roost.store.mariadb.connection import LABEL, Connection, LostRace, translate_errors
from roost.store.mariadb.link import take_name
from roost.store.mariadb.script import fill_in, literal

# The end protects against an owner that vanished with its node. The end of an owner on this server is noticed at once.
KEPT_S = 60.0
_PAUSE_S = 0.02
_OWNER = "SELECT owner FROM turn WHERE name = ?"
_TAKE = """
UPDATE turn SET owner = ?, until_s = UNIX_TIMESTAMP(SYSDATE(6)) + ?, number = number + 1
WHERE name = ? AND (owner = '' OR until_s < UNIX_TIMESTAMP(SYSDATE(6)) OR owner = ?)"""
_RENEW = "UPDATE turn SET until_s = UNIX_TIMESTAMP(SYSDATE(6)) + ?, number = number + 1 WHERE name = ? AND owner = ?"
_RELEASE = "UPDATE turn SET owner = '', number = number + 1 WHERE name = ? AND owner = ?"


class Lease:
    """A named lease on a connection of its owner.

    Args:
        connection: stays open as long as the lease is held.
        name: of a row of ``turn``.
        lock: the name of a lock of the connection; empty: take a new one.
        kept_s: time until its end, unless it is renewed.
    """

    def __init__(self, connection: Connection, name: str, *, lock: str = "", kept_s: float = KEPT_S) -> None:
        self._connection, self._kept_s = connection, kept_s
        self._name = name
        if not lock:
            lock = f"roost {secrets.token_hex(8)}"
            with translate_errors():
                take_name(connection, lock)
        self._owner = f"{lock} {connection.server.timeline}"

    def take(self) -> bool:
        """Take the lease, if it is free; return whether it was taken."""
        connection = self._connection
        try:
            with translate_errors():
                rows = connection.execute(fill_in(_OWNER, (self._name,)), is_synced=True).rows
                owner = rows[0][0] if rows else ""
                # A lock of another node is invisible here, so its owner counts as running.
                lock, _, server = owner.rpartition(" ")
                is_dead = False
                if owner and server == connection.server.timeline and not connection.server.is_cluster:
                    ((holder,),) = connection.execute(f"SELECT IS_USED_LOCK({literal(lock)})").rows
                    is_dead = holder is None
                values = (self._owner, self._kept_s, self._name, owner if is_dead else self._owner)
                return connection.execute(fill_in(_TAKE, values)).row_count == 1
        except LostRace:
            return False

    def renew(self) -> bool:
        """Postpone the end of the lease; return False if another owner has it."""
        with translate_errors():
            return self._connection.execute(fill_in(_RENEW, (self._kept_s, self._name, self._owner))).row_count == 1

    def release(self) -> None:
        """Release the lease, if it is still held."""
        with translate_errors():
            self._connection.execute(fill_in(_RELEASE, (self._name, self._owner)))

    def wait(self, wait_s: float) -> None:
        """Take the lease as soon as it is free.

        Raises:
            StoreBusy: another owner keeps it for longer than ``wait_s``.
        """
        end_s = time.monotonic() + wait_s
        while not self.take():
            if time.monotonic() >= end_s:
                raise StoreBusy(f"another process keeps the lease {self._name} of {LABEL}: retry later")
            time.sleep(_PAUSE_S)
