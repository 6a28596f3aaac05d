"""The common part of the links to database servers: repeated attempts to connect, and the history of a database."""

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from roost.errors import StoreBusy, StoreGone, StoreMissing
from roost.model.settings.roost_settings import Store as Settings
from roost.observe import log, metrics
from roost.store.rules.feed.stale_state import DatabaseRestored, ServerReplaced
from roost.store.servers.lost_hosts import Losses


class Droppable(Protocol):
    """A connection to a server."""

    def drop(self) -> None:
        """Close it without waiting for the server."""


Outcome = TypeVar("Outcome")
ConnectionT = TypeVar("ConnectionT", bound=Droppable)
_PAUSE_S = 0.1


class History(NamedTuple):
    """The history of a database: the state of a process belongs to one history."""

    epoch: int  # changes with each restore
    timeline: str  # changes with each failover outside of a cluster; may return to an earlier one


class ServerLink(ABC, Generic[ConnectionT]):
    """The connection of one store; after a loss, it is replaced by a new one.

    Args:
        settings: deadlines and waits.
        is_read_only: whether it may only read.
        process: the process to continue; None: a new one.
        losses: of other links; after a loss, a read-only link opens a new connection.
    """

    _connection: ConnectionT

    def __init__(
        self, *, settings: Settings, is_read_only: bool, process: int | None = None, losses: Losses | None = None
    ) -> None:
        self._settings = settings
        self._is_read_only = is_read_only
        # Identifies the process, also among those of other machines.
        self.process = secrets.randbits(62) if process is None else process
        # History of the loaded state; None: nothing is loaded yet.
        self.history: History | None = None
        self._failed_over: History | None = None  # history after a failover, until everything is reloaded
        self.losses = losses or Losses()
        self._opened_s = time.monotonic()

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether the connection is open, as far as this client knows."""

    @abstractmethod
    def _reconnect(self) -> tuple[ConnectionT, History]:
        """Connect, and end all previous connections of this link to the same server."""

    @property
    def connection(self) -> ConnectionT:
        """The connection; a lost one is reopened.

        Raises:
            Unavailable: no server answered within some seconds.
            DatabaseRestored: the database was restored meanwhile.
            ServerReplaced: another server took over.
        """
        connection = self._open_connection()
        if self._failed_over is not None:
            raise ServerReplaced
        return connection

    def set_history(self, history: History) -> None:
        """Set the history of a newly loaded state."""
        self.history, self._failed_over = history, None

    def _open_connection(self) -> ConnectionT:
        """Return the connection, to any server; reopen a lost one."""
        # A writer may hold locks, so only a reader closes its connection after a loss elsewhere.
        if self._is_read_only and self.losses.has_any_since(self._opened_s):
            self._connection.drop()
        if not self.is_open:
            opened_s = time.monotonic()
            connection, history = retry(self._reconnect, wait_s=self._settings.wait_s)
            previous = self._failed_over or self.history
            try:
                if has_failed_over(previous, history):
                    self._failed_over = history
            except DatabaseRestored:
                connection.drop()
                raise
            self._connection, self._opened_s = connection, opened_s
        return self._connection


def has_failed_over(previous: History | None, found: History) -> bool:
    """Return whether another server took over, and log it.

    Args:
        previous: the history of the state of a process; None: nothing is loaded yet.
        found: the present history.

    Raises:
        DatabaseRestored: the database was restored meanwhile.
    """
    if previous is None:
        return False
    if previous.epoch != found.epoch:
        raise DatabaseRestored
    if previous.timeline == found.timeline:
        return False
    metrics.TIMELINE_CHANGES.inc()
    log.event("database_failed_over", before=previous.timeline, after=found.timeline)
    return True


def retry(attempt: Callable[[], Outcome], *, wait_s: float) -> Outcome:
    """Repeat an attempt to reach the server until it succeeds, and return its result.

    Raises:
        StoreGone, StoreMissing, StoreBusy: no attempt succeeded within ``wait_s``.
    """
    end_s = time.monotonic() + wait_s
    while True:
        started_s = time.monotonic()
        try:
            return attempt()
        except (StoreGone, StoreMissing, StoreBusy):
            now_s = time.monotonic()
            if now_s + (now_s - started_s) > end_s:
                raise  # Another attempt of this length would end too late.
            time.sleep(_PAUSE_S)
