"""Attacks with request bodies."""

import socket
from collections import Counter
from contextlib import ExitStack

from tests.attack.answers import status_of
from tests.attack.bystander import run_bystander
from tests.attack.figures import Figures
from tests.attack.server import Target

_MIB = 2**20
_DECLARED_MIB, _SENT_MIB = 16, 15
_PATIENCE_S = 30
_ANSWER_S = 0.2


def bodies_of_strangers(target: Target, *, connections: int = 100) -> Figures:
    """Send most of a large body on each of many connections, without a token."""
    return _send_halves(
        target, "bodies of strangers", connections=connections, path="/placement/allocations", headers=""
    )


def bodies_of_clients(target: Target, *, connections: int = 40) -> Figures:
    """Send most of a large body on each of many connections, as an administrator."""
    sent = {**target.headers, "openstack-api-version": "placement 1.39"}
    headers = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return _send_halves(
        target, "bodies of clients", connections=connections, path="/placement/allocations", headers=headers
    )


def many_values(target: Target, *, value: bytes = b"1", mib: int = 16) -> Figures:
    """Send a body of many small values, as an administrator."""
    body = b"[" + (value + b",") * ((mib * _MIB - 8) // (len(value) + 1)) + value + b"]"
    headers = {**target.headers, "openstack-api-version": "placement 1.39", "content-type": "application/json"}
    with run_bystander(target) as bystander:
        status = target.served.ask("POST", "/placement/allocations", body, headers=headers)[0]
        growth_mib = target.rss_growth_mib()
    return Figures(
        name=f"many values {value.decode()}",
        requests=1,
        statuses=Counter({status: 1}),
        observations=bystander.observations(),
        rss_growth_mib=growth_mib,
    )


def _send_halves(target: Target, name: str, *, connections: int, path: str, headers: str) -> Figures:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\n"
        f"content-length: {_DECLARED_MIB * _MIB}\r\n\r\n"
    )
    statuses: Counter[int] = Counter()
    with run_bystander(target) as bystander, ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection((target.host, target.port), timeout=_PATIENCE_S))
            for _ in range(connections)
        ]
        for client in clients:
            _send(client, head.encode(), b"x" * (_SENT_MIB * _MIB))
            # A refused client has its response by now. The server still waits for the bodies of the others.
            client.settimeout(_ANSWER_S)
            statuses[status_of(client)] += 1
        growth_mib = target.rss_growth_mib()
    return Figures(
        name=name,
        requests=connections,
        statuses=statuses,
        observations=bystander.observations(),
        rss_growth_mib=growth_mib,
    )


def _send(client: socket.socket, *parts: bytes) -> None:
    """Send as much as the server takes."""
    try:
        for part in parts:
            client.sendall(part)
    except (ConnectionError, TimeoutError):
        return
