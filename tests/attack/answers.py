"""What an attacker is answered."""

import socket


def status_of(client: socket.socket) -> int:
    """Return the status of the answer; 0: there is none before the server closes, or the client's patience ends."""
    try:
        line = client.recv(64)
    except (ConnectionError, TimeoutError):
        return 0
    return int(line.split()[1]) if line.startswith(b"HTTP/1.1 ") else 0
