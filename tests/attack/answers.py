"""Responses to an attacker."""

import socket


def status_of(client: socket.socket) -> int:
    """Return the status of the response; 0 if the connection closes or times out before it."""
    try:
        line = client.recv(64)
    except (ConnectionError, TimeoutError):
        return 0
    return int(line.split()[1]) if line.startswith(b"HTTP/1.1 ") else 0
