"""A relay in front of a database server, which can freeze: its connections stay open, but no byte passes."""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PAUSE_S = 0.02


class FreezingRelay:
    """Forwards connections from a port to the socket of a server.

    Args:
        path: of the socket.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._frozen, self._closed = threading.Event(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._peers: dict[socket.socket, socket.socket] = {}
        self.port: int = self._listener.getsockname()[1]
        self.attempts = 0  # to connect; attempts during a freeze count at its end

    def freeze(self) -> None:
        """Stop forwarding. The kernel still accepts packets and connections, as on a frozen machine."""
        self._frozen.set()

    def thaw(self) -> None:
        """Continue, and take the connections that have come meanwhile."""
        self._frozen.clear()

    def run(self) -> None:
        """Forward until ``close``."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._closed.wait(_PAUSE_S if self._frozen.is_set() else 0):
                for key, _ in () if self._frozen.is_set() else selector.select(_PAUSE_S):
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    if source is self._listener:
                        self._accept(selector)
                    elif source in self._peers:
                        self._forward(selector, source)
        for each in (self._listener, *self._peers):
            each.close()

    def close(self) -> None:
        """Close all connections."""
        self._closed.set()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        client, _ = self._listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._path)
        self.attempts += 1
        self._peers |= {client: server, server: client}
        for each in (client, server):
            selector.register(each, selectors.EVENT_READ)

    def _forward(self, selector: selectors.BaseSelector, source: socket.socket) -> None:
        peer = self._peers[source]
        with suppress(OSError):
            if part := source.recv(65536):
                peer.sendall(part)
                return
        for each in (source, peer):
            selector.unregister(each)
            del self._peers[each]
            each.close()


@contextmanager
def freezing_relay(path: str) -> Iterator[FreezingRelay]:
    """Run such a host during the block."""
    relay = FreezingRelay(path)
    thread = threading.Thread(target=relay.run)
    thread.start()
    try:
        yield relay
    finally:
        relay.close()
        thread.join()
