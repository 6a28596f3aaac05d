"""A thread for one connection and its user, opened again after each loss."""

import threading
from collections.abc import Callable
from typing import Any, Protocol

from roost.errors import error_text
from roost.nova.rpc.broker_link import LINK_ERRORS, BrokerLink
from roost.nova.rpc.broker_options import BrokerOptions
from roost.nova.rpc.rpc_monitor import RpcMonitor
from roost.observe import log

# A connection that lasted this long was good, so the next attempt waits for the shortest time.
_GOOD_S = 10.0


class LinkUser(Protocol):
    """The user of a connection; the thread of the connection calls its methods."""

    def begin(self, connection: Any) -> None:
        """Set up a new connection."""

    def turn(self) -> float:
        """Do all due work; return the seconds until the next work is due."""

    def end(self) -> None:
        """Finish the use of an open connection, since the thread stops."""

    def lose(self) -> None:
        """Forget a connection: it is closed."""


class LinkThread:
    """Opens a connection, lets its user work, and connects again after each loss, in a thread.

    Args:
        role: name of the thread and of its connection in the log and in the state.
    """

    def __init__(
        self,
        link: BrokerLink,
        user: LinkUser,
        *,
        role: str,
        options: BrokerOptions,
        monitor: RpcMonitor,
        clock: Callable[[], float],
    ) -> None:
        self._link, self._user, self._role = link, user, role
        self._options, self._monitor, self._clock = options, monitor, clock
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"roost-rpc-{role}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, wait_s: float) -> bool:
        """Stop the thread; return whether it has ended within a time."""
        self._stops.set()
        self._link.wake()
        if self._thread.ident is None:
            self._link.end()  # The thread was never started.
            return True
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        failures = 0
        while not self._stops.is_set():
            began_s = self._clock()
            self._use_connection()
            if self._stops.is_set():
                break
            failures = 1 if self._clock() - began_s > _GOOD_S else failures + 1
            self._stops.wait(pause_s(self._options, failures))
        self._link.end()

    def _use_connection(self) -> None:
        """Use one connection until it is lost or the thread stops."""
        try:
            self._user.begin(self._link.open())
            self._monitor.note_connected(self._role, self._link.address)
            while not self._stops.is_set():
                self._link.pump(self._user.turn())
            self._user.end()
        except LINK_ERRORS as error:
            self._report(error_text(error))
        except Exception as error:  # noqa: BLE001  # The library has no error of its own for bytes that are not AMQP.
            if not self._stops.is_set():
                log.fault("", error)
            self._report(error_text(error))
        finally:
            self._link.close()
            self._user.lose()
            self._monitor.note_lost(self._role)

    def _report(self, problem: str) -> None:
        if self._stops.is_set():
            return  # The broker may be gone as well; nothing depends on it any longer.
        self._monitor.note_error(self._role, problem)
        log.event("rpc_broker_lost", connection=self._role, broker=self._link.address, problem=problem)


def pause_s(options: BrokerOptions, failures: int) -> float:
    """Return the pause before the next attempt, after a number of failures in a row.

    All brokers get an attempt between two pauses.
    """
    rounds, rest = divmod(failures, len(options.brokers))
    if rest or not rounds:
        return 0.0
    pause = options.rabbit_retry_interval + options.rabbit_retry_backoff * (rounds - 1)
    return float(min(pause, options.rabbit_interval_max))
