"""Serve a Neutron without networks: ``serve_neutron.py PORT``. Nova reads the ports even of servers without any."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Neutron(BaseHTTPRequestHandler):
    """The empty lists of the networking API."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with an empty list, or with the versions."""
        noun = self.path.partition("?")[0].rstrip("/").rpartition("/")[2].removesuffix(".json")
        versions = {"versions": [{"id": "v2.0", "status": "CURRENT", "links": []}]}
        self._answer(200, versions if noun in {"", "v2.0"} else {noun.replace("-", "_"): []})

    def do_POST(self) -> None:
        """Refuse every change."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self._answer(404, {"NeutronError": {"type": "NotFound", "message": "this cloud has no network", "detail": ""}})

    def do_PUT(self) -> None:
        """Refuse every change."""
        self.do_POST()

    def do_DELETE(self) -> None:
        """Refuse every change."""
        self.do_POST()

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Neutron).serve_forever()
