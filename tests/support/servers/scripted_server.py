"""A server over HTTP that answers what it was told to."""

import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """A server that says nothing of clients that break a connection off, as they may."""

    def handle_error(self, request, client_address):
        """Tell of what else went wrong."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def scripted(*answers):
    """Serve answers in their order, and yield the address and what was asked; None: no answer."""
    left, asked = [*answers], []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append((self.command, self.path, json.loads(body) if body else None))
            found = left.pop(0)
            if found is None:
                self.close_connection = True
                return
            status, said = found
            text = b"" if said is None else said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  # names of the standard library

        def log_message(self, *_):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/below/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
