"""A connection pooler as clients see it: it forwards all data, but replaces the process ids of the server."""

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"
_HEAD = struct.Struct("!cI")  # the type of a message, and its length without the type
_KEY = b"K"  # BackendKeyData: the process id of the server, and the secret to cancel it
_INVENTED = struct.pack("!I", 1)


@contextmanager
def pooler(folder: Path) -> Iterator[str]:
    """Yield the folder of a socket that forwards clients to the server with its socket in ``folder``."""
    own = Path(tempfile.mkdtemp(prefix="roost-pool-", dir="/tmp"))
    own.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(own / _SOCKET))
        (own / _SOCKET).chmod(0o777)
        listener.listen()
        acceptor = threading.Thread(target=_accept, args=(listener, str(folder / _SOCKET)), daemon=True)
        acceptor.start()
        try:
            yield str(own)
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            shutil.rmtree(own)


def _accept(listener: socket.socket, server: str) -> None:
    threads = []
    with suppress(OSError):  # After a shutdown of the listener.
        while True:
            client, _ = listener.accept()
            threads.append(threading.Thread(target=_serve, args=(client, server), daemon=True))
            threads[-1].start()
    for each in threads:
        each.join()


def _serve(client: socket.socket, server: str) -> None:
    with client, socket.socket(socket.AF_UNIX) as upstream:
        upstream.connect(server)
        requests = threading.Thread(target=_forward, args=(client, upstream), daemon=True)
        requests.start()
        _answer(upstream, client)
        requests.join()


def _answer(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError, EOFError):
        while True:
            kind, size = _HEAD.unpack(head := _receive(server, _HEAD.size))
            body = _receive(server, size - 4)
            client.sendall(head + (_INVENTED + body[4:] if kind == _KEY else body))
            if kind == _KEY:
                break
    _forward(server, client)


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _receive(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := source.recv(size - len(data))):
            raise EOFError
        data += more
    return data
