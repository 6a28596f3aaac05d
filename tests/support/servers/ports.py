"""Free ports of the loopback address."""

import fcntl
import os
import random
import socket
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

_LASTING = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return different ports that no process listens on."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def lasting_ports(count: int) -> list[int]:
    """Return different free ports that no outgoing connection takes while their server is down.

    No other test process of this user gets these ports while this one lives.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(_LASTING, len(_LASTING)):
        if len(found) == count:
            break
        if port not in _taken and _lock(port):
            with suppress(OSError), socket.create_server(("127.0.0.1", port)):
                _taken.add(port)
                found.append(port)
    assert len(found) == count, "too few ports are free"
    return found


_taken: set[int] = set()


@cache
def _lock_file() -> BinaryIO:
    """Return an open file: a lock of one of its bytes is a reservation of the port. The locks end with the process."""
    return (Path(tempfile.gettempdir()) / f"roost-test-ports.{os.geteuid()}").open("ab")


def _lock(port: int) -> bool:
    """Reserve a port; return False if another process has it."""
    with suppress(OSError):
        fcntl.lockf(_lock_file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        return True
    return False
