"""Decisions through ``roost up``: clients on sockets of their own, a server in a process of its own."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from bench.databases import Databases
from bench.fleets import requests_of
from bench.workloads import Figures, Workload, in_ms
from roost.model.request import Request

_CLIENTS = 8
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


def served(workload: Workload, databases: Databases) -> Figures:
    """Measure durable decisions a second, and how long each client waits for its own."""
    folder = databases.folder / f"served-{time.monotonic_ns()}"
    folder.mkdir()
    shutil.copyfile(databases.template(workload.fleet, workload.hosts), folder / "roost.db")
    messages = [_message(request) for request in requests_of(workload)]
    with _server(folder) as port:
        _ask(port, messages[: workload.warm_up])
        start = time.perf_counter()
        times = _ask(port, messages[workload.warm_up :])
        took = time.perf_counter() - start
    return {"decisions_per_s": workload.requests / took} | in_ms(times)


@contextmanager
def _server(folder: Path) -> Iterator[int]:
    """Run a server on a database; give its port."""
    words = [sys.executable, "-m", "roost", "up", "--listen", "127.0.0.1:0", "--data", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=folder, env=_environ()) as process:
        assert process.stdout is not None
        try:
            found = re.match(r"listening on http://[\w.]+:(\d+)", process.stdout.readline())
            assert found is not None, process.poll()
            yield int(found[1])
        finally:
            process.send_signal(signal.SIGTERM)


def _environ() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
    return kept | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _message(request: Request) -> bytes:
    asked = {
        "flavor": msgspec.structs.asdict(request.flavor),
        "project_id": request.project_id,
        "availability_zone": request.availability_zone,
    }
    body = msgspec.json.encode(asked)
    head = "POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def _ask(port: int, messages: Sequence[bytes]) -> list[float]:
    """Ask all of it over several connections at once; return how long each answer took."""
    times: list[list[float]] = [[] for _ in range(_CLIENTS)]
    clients = [
        threading.Thread(target=_ask_in_turn, args=(port, messages[number::_CLIENTS], times[number]))
        for number in range(_CLIENTS)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    found = [each for own in times for each in own]
    assert len(found) == len(messages), "a client was not answered as it should be"
    return found


def _ask_in_turn(port: int, messages: Sequence[bytes], times: list[float]) -> None:
    with closing(socket.create_connection(("127.0.0.1", port))) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for message in messages:
            start = time.perf_counter()
            link.sendall(message)
            answered = _read(link)
            times.append(time.perf_counter() - start)
            assert answered.startswith(b"HTTP/1.1 201"), answered[:500]
            assert b'"outcome":"granted"' in answered, answered[-500:]


def _read(link: socket.socket) -> bytes:
    """Read one answer."""
    found = b""
    while (end := found.find(b"\r\n\r\n")) < 0:
        found += link.recv(65536)
    length = _LENGTH.search(found, 0, end)
    assert length is not None, found
    while len(found) < end + 4 + int(length[1]):
        found += link.recv(65536)
    return found
