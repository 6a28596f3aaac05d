"""Free ports of the loopback address."""

import random
import socket
from contextlib import suppress

_LASTING = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return different ports that no process listens on."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def lasting_ports(count: int) -> list[int]:
    """Return different free ports that no outgoing connection takes while their server is down."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_LASTING, len(_LASTING)):
        if len(found) == count:
            break
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    assert len(found) == count, "too few ports are free"
    return found
