"""Attacks with many connections, or many requests on each."""

import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack

from tests.attack.answers import status_of
from tests.attack.bystander import run_bystander
from tests.attack.figures import Figures
from tests.attack.server import Target

_ASK = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
_AT_ONCE = 2_000
_PATIENCE_S = 30


def pipelining(target: Target, *, connections: int = 20, duration_s: float = 5.0) -> Figures:
    """Send requests as fast as the server takes them on many connections, and read no response."""
    request_counts: list[int] = []
    with run_bystander(target) as bystander, ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection((target.host, target.port), timeout=_PATIENCE_S))
            for _ in range(connections)
        ]
        end_s = time.monotonic() + duration_s
        threads = [threading.Thread(target=_send_until_end, args=(each, end_s, request_counts)) for each in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        growth_mib = target.rss_growth_mib()
    return Figures(
        name="pipelining",
        requests=sum(request_counts),
        observations=bystander.observations(),
        rss_growth_mib=growth_mib,
    )


def _send_until_end(client: socket.socket, end_s: float, request_counts: list[int]) -> None:
    """Send until the end time; note the number of complete requests that the server took."""
    data, count = _ASK * _AT_ONCE, 0
    while (remaining_s := end_s - time.monotonic()) > 0:
        client.settimeout(remaining_s)
        try:
            count += client.send(data)
        except (ConnectionError, TimeoutError):
            break
    request_counts.append(count // len(_ASK))


def idle_connections(target: Target, *, connections: int = 1_100) -> Figures:
    """Open many connections, and stay silent on them until the server has closed them all."""
    statuses: Counter[int] = Counter()
    clients = []
    with run_bystander(target) as bystander, ExitStack() as stack:
        for _ in range(connections):
            try:
                client = socket.create_connection((target.host, target.port), timeout=_PATIENCE_S)
            except OSError:
                statuses[0] += 1
            else:
                clients.append(stack.enter_context(client))
        for client in clients:
            statuses[status_of(client)] += 1
        growth_mib = target.rss_growth_mib()
    return Figures(
        name="idle connections",
        requests=connections,
        statuses=statuses,
        observations=bystander.observations(),
        rss_growth_mib=growth_mib,
    )
