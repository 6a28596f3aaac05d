"""A proxy between a client and a server that closes connections at chosen moments."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Literal

# The moment: before the server has the request; after it has answered, before the answer; within the answer.
Cut = Literal["request", "answer", "part"] | None
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_TIMEOUT_S = 30


class CuttingProxy:
    """Passes requests on, and closes the connection of a request as its cut says.

    Args:
        port: of the server.
        cuts: one for each request in order of arrival; None, and every further request: no cut.
    """

    def __init__(self, port: int, cuts: list[Cut]) -> None:
        self._port, self._cuts = port, cuts
        self.requests: list[bytes] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def accept(self) -> None:
        """Serve connections until the listener is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Stop to accept connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(_TIMEOUT_S)
        with closing(client), closing(socket.create_connection(("127.0.0.1", self._port), _TIMEOUT_S)) as server:
            while request := _read_message(client):
                with self._lock:
                    self.requests.append(request)
                    cut = self._cuts.pop(0) if self._cuts else None
                if cut == "request":
                    return
                server.sendall(request)
                answer = _read_message(server)
                if cut == "answer":
                    return
                client.sendall(answer[: len(answer) // 2] if cut == "part" else answer)
                if cut == "part":
                    return


@contextmanager
def cutting_proxy(port: int, cuts: list[Cut]) -> Iterator[CuttingProxy]:
    """Run such a proxy during the block."""
    proxy = CuttingProxy(port, cuts)
    thread = threading.Thread(target=proxy.accept)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()


def _read_message(link: socket.socket) -> bytes:
    """Read one message with a known length; empty: the peer has closed the connection."""
    found = b""
    while (end := found.find(b"\r\n\r\n")) < 0:
        try:
            part = link.recv(65536)
        except OSError:
            return b""
        if not part:
            return b""
        found += part
    length = _LENGTH.search(found, 0, end)
    size = end + 4 + (int(length[1]) if length else 0)
    while len(found) < size:
        found += link.recv(65536)
    return found
