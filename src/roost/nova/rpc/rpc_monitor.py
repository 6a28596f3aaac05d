"""State and counts of a server, for its pages and as metrics."""

import threading
from typing import Literal, get_args

import msgspec

from roost.observe import log
from roost.observe.work_metrics import (
    NOVA_CALLS_OPEN,
    NOVA_CONNECTED,
    NOVA_MESSAGES,
    NOVA_RECONNECTS,
    NOVA_REPLIES,
)

MessageKind = Literal["call", "cast", "duplicate", "malformed", "refused"]
Outcome = Literal["answered", "failed", "dropped"]


class RpcState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a server at one time, and its counts since its start.

    Args:
        connected: all connections are open.
        broker: address of the broker of received messages; empty: none yet.
        last_error: the reason of the last lost connection; empty: none was lost.
        open_calls: calls in progress.
        received: all messages, with duplicates and malformed ones.
        duplicates, poisoned: repeated and malformed messages, all dropped.
        refused: messages of an unknown method or version.
        answered, failed: calls by their outcome.
        replies_dropped: replies without a caller.
    """

    connected: bool
    broker: str
    last_error: str
    open_calls: int
    received: int
    casts: int
    answered: int
    failed: int
    duplicates: int
    poisoned: int
    refused: int
    replies_dropped: int
    reconnects: int


class RpcMonitor:
    """Collects the state of a server; for any thread."""

    def __init__(self, roles: tuple[str, ...]) -> None:
        self._lock = threading.Lock()
        self._connected: dict[str, bool] = dict.fromkeys(roles, False)
        self._was_connected: set[str] = set()
        self._broker, self._last_error = "", ""
        self._main_role = roles[0]
        self._messages: dict[str, int] = dict.fromkeys(get_args(MessageKind), 0)
        self._replies: dict[str, int] = dict.fromkeys(get_args(Outcome), 0)
        self._open_calls = self._reconnects = 0

    def note_connected(self, role: str, address: str) -> None:
        """Note a connection ready for use."""
        with self._lock:
            is_again = role in self._was_connected
            self._was_connected.add(role)
            self._connected[role] = True
            self._reconnects += is_again
            if role == self._main_role:
                self._broker = address
        NOVA_CONNECTED.labels(role).set(1)
        if is_again:
            NOVA_RECONNECTS.inc()
        log.event("rpc_broker_connected", connection=role, broker=address)

    def note_lost(self, role: str) -> None:
        """Note the end of a connection."""
        with self._lock:
            self._connected[role] = False
        NOVA_CONNECTED.labels(role).set(0)

    def note_error(self, role: str, problem: str) -> None:
        """Note the reason of a lost connection."""
        with self._lock:
            self._last_error = f"{role}: {problem}"

    def count_message(self, kind: MessageKind) -> None:
        """Count a received message."""
        with self._lock:
            self._messages[kind] += 1
        NOVA_MESSAGES.labels(kind).inc()

    def count_reply(self, outcome: Outcome) -> None:
        """Count the outcome of a call, or a reply without a caller."""
        with self._lock:
            self._replies[outcome] += 1
        NOVA_REPLIES.labels(outcome).inc()

    def set_open_calls(self, count: int) -> None:
        """Set the number of calls in progress."""
        with self._lock:
            self._open_calls = count
        NOVA_CALLS_OPEN.set(count)

    def read(self) -> RpcState:
        """Return the current state."""
        with self._lock:
            return RpcState(
                connected=all(self._connected.values()),
                broker=self._broker,
                last_error=self._last_error,
                open_calls=self._open_calls,
                received=sum(self._messages.values()),
                casts=self._messages["cast"],
                answered=self._replies["answered"],
                failed=self._replies["failed"],
                duplicates=self._messages["duplicate"],
                poisoned=self._messages["malformed"],
                refused=self._messages["refused"],
                replies_dropped=self._replies["dropped"],
                reconnects=self._reconnects,
            )
