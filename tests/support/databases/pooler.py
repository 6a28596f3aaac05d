"""A connection pooler as clients see it: it passes everything on, and names processes that no server has."""

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"
_HEAD = struct.Struct("!cI")  # type of a message, and its length without the type
_KEY = b"K"  # The process that serves, and the secret that cancels it.
_INVENTED = struct.pack("!I", 1)


@contextmanager
def pooler(folder: Path) -> Iterator[str]:
    """Yield the folder of a socket whose clients get to the server with a socket in another folder."""
    own = Path(tempfile.mkdtemp(prefix="roost-pool-", dir="/tmp"))
    own.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(own / _SOCKET))
        (own / _SOCKET).chmod(0o777)
        listening.listen()
        accepting = threading.Thread(target=_accept, args=(listening, str(folder / _SOCKET)), daemon=True)
        accepting.start()
        try:
            yield str(own)
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            shutil.rmtree(own)


def _accept(listening: socket.socket, server: str) -> None:
    serving = []
    with suppress(OSError):  # It was shut down.
        while True:
            client, _ = listening.accept()
            serving.append(threading.Thread(target=_serve, args=(client, server), daemon=True))
            serving[-1].start()
    for each in serving:
        each.join()


def _serve(client: socket.socket, server: str) -> None:
    with client, socket.socket(socket.AF_UNIX) as upstream:
        upstream.connect(server)
        asking = threading.Thread(target=_pass_on, args=(client, upstream), daemon=True)
        asking.start()
        _answer(upstream, client)
        asking.join()


def _answer(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError, EOFError):
        while True:
            kind, size = _HEAD.unpack(head := _exactly(server, _HEAD.size))
            body = _exactly(server, size - 4)
            client.sendall(head + (_INVENTED + body[4:] if kind == _KEY else body))
            if kind == _KEY:
                break
    _pass_on(server, client)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := source.recv(size - len(data))):
            raise EOFError
        data += more
    return data
