"""A small Keystone: it issues a token to the service, and validates the tokens of users."""

import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVICE_PASSWORD = "pw"
PROJECT = {"id": "p1", "name": "shop", "domain": {"id": "default", "name": "Default"}}
FUTURE, PAST = "2099-01-01T00:00:00.000000Z", "2001-01-01T00:00:00.000000Z"
# Token -> roles, scope, and time of expiry.
TOKENS = {
    "service-token": (["service"], {"project": PROJECT}, FUTURE),
    "admin-token": (["Admin"], {"project": PROJECT}, FUTURE),
    "reader-token": (["reader"], {"project": PROJECT}, FUTURE),
    "system-reader-token": (["reader"], {"system": {"all": True}}, FUTURE),
    "system-token": (["admin"], {"system": {"all": True}}, FUTURE),
    "old-token": (["admin"], {"project": PROJECT}, PAST),
}


def token_description(token):
    """Return Keystone's description of a token."""
    roles, scope, ends = TOKENS[token]
    return {
        "methods": ["password"],
        "expires_at": ends,
        "issued_at": PAST,
        "audit_ids": ["x"],
        "user": {"id": f"user-of-{token}", "name": token, "domain": PROJECT["domain"]},
        "roles": [{"id": role, "name": role} for role in roles],
        **scope,
    }


class Keystone(BaseHTTPRequestHandler):
    """The part of version 3 of the identity API that validates tokens."""

    asked = 0  # number of token validations
    placement = ""  # URL of Placement in the catalog
    network = ""  # URL of Neutron in the catalog
    logins = 0  # number of issued tokens

    def do_GET(self):
        """Serve token validations, the versions of the API, and the count of validations."""
        if self.path.rstrip("/").endswith("/count"):
            self._answer(200, {"asked": Keystone.asked})
        elif "/auth/tokens" in self.path:
            Keystone.asked += 1
            token = self.headers.get("X-Subject-Token")
            known = token in TOKENS
            self._answer(
                200 if known else 404, {"token": token_description(token)} if known else {"error": {"code": 404}}
            )
        else:
            here = f"http://{self.headers['Host']}/v3/"
            version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": here}]}
            is_one = self.path.startswith("/v3")
            self._answer(
                200 if is_one else 300, {"version": version} if is_one else {"versions": {"values": [version]}}
            )

    def do_POST(self):
        """Issue a token to the service for its password."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        password = body["auth"]["identity"]["password"]["user"]["password"]
        if password != SERVICE_PASSWORD:
            self._answer(401, {"error": {"code": 401, "message": "no"}})
            return
        endpoint = {"interface": "internal", "region": "r", "url": f"http://{self.headers['Host']}/v3", "id": "e"}
        catalog = [{"type": "identity", "name": "keystone", "id": "k", "endpoints": [endpoint]}]
        for kind, url in (("placement", self.placement), ("network", self.network)):
            if url:
                endpoint = {"interface": "internal", "region": "r", "url": url, "id": kind}
                catalog.append({"type": kind, "name": kind, "id": kind, "endpoints": [endpoint]})
        type(self).logins += 1
        self._answer(
            201,
            {"token": {**token_description("service-token"), "catalog": catalog}},
            {"X-Subject-Token": "service-token"},
        )

    def _answer(self, status, body, headers=None):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_arguments):
        """Log nothing."""


@contextmanager
def keystone(placement="", *, network=""):
    """Run a Keystone in this process; yield its address and its class, which counts logins.

    Args:
        placement, network: URLs of Placement and Neutron in its catalog, in region ``r``.
    """
    handler = type("OneKeystone", (Keystone,), {"placement": placement, "network": network})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v3", handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Keystone)
    print(server.server_address[1], flush=True)
    server.serve_forever()
