"""An HTTP server with scripted replies."""

import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """A server that does not report clients that break a connection."""

    def handle_error(self, request, client_address):
        """Report all errors except broken connections."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def scripted_server(*answers):
    """Serve replies in order; yield the address and the list of requests. The reply None closes the connection."""
    left, requests = [*answers], []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            requests.append((self.command, self.path, json.loads(body) if body else None))
            reply = left.pop(0)
            if reply is None:
                self.close_connection = True
                return
            status, content = reply
            text = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
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
        yield f"http://127.0.0.1:{server.server_port}/below/", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
