"""Free ports of the loopback address."""

import socket


def free_ports(count: int) -> list[int]:
    """Return different ports that no process listens on."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports
