"""Clients of several servers, each in a thread, that write until they are stopped."""

import threading
from collections import Counter
from collections.abc import Sequence

from tests.ha.client import Client, Figures
from tests.ha.record import Record


class Load:
    """Eight clients, spread over the servers.

    Args:
        ports: of the servers.
        seed: of the choices of all clients.
    """

    def __init__(self, ports: Sequence[int], *, seed: int, clients: int = 8) -> None:
        self._is_over = threading.Event()
        self._clients = [Client(ports[at % len(ports)], 1000 * seed + at, self._is_over) for at in range(clients)]
        self._threads = [threading.Thread(target=each.run, daemon=True) for each in self._clients]

    def start(self) -> None:
        """Start all clients."""
        for thread in self._threads:
            thread.start()

    def reset_figures(self) -> None:
        """Measure from now on."""
        for each in self._clients:
            each.figures = Figures()

    def stop(self) -> None:
        """Let each client finish its request, and wait for its end."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    @property
    def records(self) -> list[Record]:
        """The records of all clients."""
        return [each.record for each in self._clients]

    @property
    def errors(self) -> dict[str, int]:
        """The number of failed requests by kind."""
        total: Counter[str] = Counter()
        for each in self._clients:
            total += each.figures.errors
        return dict(total)

    @property
    def outage_s(self) -> float:
        """The longest time in which one client had no successful answer."""
        return max(each.figures.outage_s for each in self._clients)

    @property
    def longest_wait_s(self) -> float:
        """The duration of the longest request."""
        return max(each.figures.longest_wait_s for each in self._clients)

    @property
    def unexpected(self) -> list[str]:
        """Wrong answers."""
        return [text for each in self._clients for text in each.unexpected]
