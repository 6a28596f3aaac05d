"""Lost connections and silent hosts, shared so that each hang is waited for only once."""

import math
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

Host = TypeVar("Host")
_KEPT_S = 30.0  # for which a silent host is tried last


class Losses:
    """The last loss of a connection, shared by the connections of a store.

    A server that hangs is detected by a deadline. Other connections to this server must not wait for their own.
    """

    def __init__(self) -> None:
        self._at_s = -math.inf

    def note(self) -> None:
        """Record a loss."""
        self._at_s = time.monotonic()

    def has_any_since(self, opened_s: float) -> bool:
        """Return whether there was a loss after a time of ``time.monotonic``."""
        return self._at_s >= opened_s


class SilentHosts:
    """Hosts of a URL that did not answer an attempt to connect in time: further attempts try them last.

    Each attempt at a machine that hangs, or whose packets are dropped, takes its whole timeout.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until_s: dict[str, float] = {}  # by address

    def note(self, address: str) -> None:
        """Record that a host did not answer in time."""
        self._until_s[address] = self._clock() + _KEPT_S

    def forget(self, address: str) -> None:
        """Record that a host answered."""
        self._until_s.pop(address, None)

    def order(self, hosts: Iterable[Host], *, address: Callable[[Host], str]) -> list[Host]:
        """Return the hosts in their order, but silent ones last.

        Args:
            hosts: in order of preference.
            address: returns the address of a host.
        """
        now_s = self._clock()
        return sorted(hosts, key=lambda host: self._until_s.get(address(host), now_s) > now_s)


# Of this process: its connections are opened in several threads, for several stores.
SILENT_HOSTS = SilentHosts()
