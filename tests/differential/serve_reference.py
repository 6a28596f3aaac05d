"""Serve the reference over HTTP, with a new database on request: ``serve_reference.py FOLDER``.

The Python of the reference's environment runs this script. FOLDER holds ``placement.conf``, which names the database
``FOLDER/placement.sqlite``. Each line on the standard input starts a new process with an empty database; once it
listens, the script prints its address. The end of the input stops the server.
"""

import importlib
import io
import os
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, cast
from urllib.parse import unquote_to_bytes

Application = Callable[[dict[str, Any], Callable[..., object]], Iterable[bytes]]

# Imports of the application; they run once, before the forks.
HEAVY = (
    "sqlalchemy.orm",
    "alembic.command",
    "oslo_db.sqlalchemy.enginefacade",
    "oslo_middleware",
    "oslo_policy.policy",
    "keystonemiddleware.auth_token",
    "webob",
    "routes",
    "jsonschema",
    "os_traits",
    "os_resource_classes",
)


class Handler(BaseHTTPRequestHandler):
    """A client connection; each request becomes one call of the application.

    The WSGI server of the standard library would add a content type, and close after each response.
    """

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # Send head and body together; separate packets would wait for an acknowledgement.
    application: Application

    def serve(self) -> None:
        """Answer one request with any method."""
        statuses: list[str] = []
        headers: list[tuple[str, str]] = []

        def start(
            status: str, pairs: list[tuple[str, str]], _error: tuple[type, BaseException, TracebackType] | None = None
        ) -> None:
            statuses[:], headers[:] = [status], pairs

        environ = self._environ(self._sent_body())
        body = b"".join(self.application(environ, start))
        code, _, reason = statuses[0].partition(" ")
        self.send_response_only(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in headers) and code not in {"204", "304"}:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Return ``serve`` for every HTTP method, because the application refuses unknown ones."""
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Log nothing, because the application has its own log."""

    def _sent_body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        length = self.headers.get("content-length", "0").strip()
        if length.isdigit():
            return self.rfile.read(int(length))
        self.close_connection = True  # The start of the next request is unknown.
        return b""

    def _environ(self, body: bytes) -> dict[str, Any]:
        # Use the original path, because `self.path` collapses slashes at the beginning.
        path, _, query = self.requestline.split()[1].partition("?")
        host, port = cast("tuple[str, int]", self.server.server_address[:2])
        environ: dict[str, Any] = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": self.client_address[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name in dict.fromkeys(key.lower() for key in self.headers):
            key = name.upper().replace("-", "_")
            value = ",".join(each.strip() for each in self.headers.get_all(name, []))
            environ[key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"] = value
        if "HTTP_TRANSFER_ENCODING" in environ:
            environ["CONTENT_LENGTH"] = str(len(body))
        return environ


class Server(ThreadingHTTPServer):
    """A server on an open socket, so that its address outlives the processes."""

    daemon_threads = True

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(listener.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener


def serve(folder: Path, listener: socket.socket, ready: int) -> None:
    """Serve the folder's database in this process until it is killed."""
    with (folder / "log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = str(folder)
    Handler.application = staticmethod(importlib.import_module("placement.wsgi.api").application)
    os.write(ready, b"!")
    os.close(ready)
    Server(listener).serve_forever()


def start_server(folder: Path, listener: socket.socket) -> int:
    """Start a server process; return its id when it is ready."""
    waiting, ready = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(waiting)
            serve(folder, listener, ready)
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(ready)
    is_ready = os.read(waiting, 1)
    os.close(waiting)
    if not is_ready:
        sys.exit(f"the reference does not start in {folder}")
    return child


def stop_server(child: int) -> None:
    """Stop a server process."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main(folder: Path) -> None:
    """Start a new server with an empty database for each line of the standard input."""
    database, prepared = folder / "placement.sqlite", folder / "prepared.sqlite"
    for module in HEAVY:
        importlib.import_module(module)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    stop_server(start_server(folder, listener))  # The first start creates the tables and the standard names.
    shutil.copy(database, prepared)
    child = 0
    for _ in sys.stdin:
        if child:
            stop_server(child)
        for old_file in folder.glob("placement.sqlite*"):
            old_file.unlink()
        shutil.copy(prepared, database)
        child = start_server(folder, listener)
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    if child:
        stop_server(child)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
