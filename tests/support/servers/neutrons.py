"""A small Neutron: ports, subnets and extensions, over HTTP."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.scripted_server import Server


class Neutron:
    """The records of a Neutron, and the requests that it got."""

    def __init__(self):
        self.subnets = {}  # uuid -> network and segment
        self.ports = {}  # uuid -> body
        self.extensions = ["segment", "subnet"]
        self.token = None  # that clients must send; None: any
        self.statuses = {}  # of answers that are errors, by the beginning of the path
        self.page_size = 1000
        self.requests = []
        self.is_silent = False  # close connections without an answer
        self.gate = threading.Event()  # no answer before it is set
        self.gate.set()
        self.url = ""

    def add_subnet(self, uuid, network, segment=None):
        """Add a subnet of a network."""
        self.subnets[uuid] = {"id": uuid, "network_id": network, "segment_id": segment}

    def add_port(self, uuid, network, *subnets, vnic_type="normal"):
        """Add a port with an address in each of the subnets."""
        addresses = [{"subnet_id": each, "ip_address": "10.0.0.9"} for each in subnets]
        self.ports[uuid] = {
            "id": uuid,
            "network_id": network,
            "fixed_ips": addresses,
            "binding:vnic_type": vnic_type,
        }

    def count(self, prefix):
        """Return the number of requests for paths with a prefix."""
        return sum(path.startswith(f"/v2.0{prefix}") for path in self.requests)

    def answer(self, target):
        """Return status and body of a GET."""
        path, query = urlsplit(target).path.removeprefix("/v2.0"), parse_qs(urlsplit(target).query)
        status = next((status for prefix, status in self.statuses.items() if path.startswith(prefix)), 200)
        if status != 200:
            return status, {"NeutronError": {"type": "Broken", "message": "broken", "detail": ""}}
        if path == "/extensions":
            return 200, {"extensions": [{"alias": alias, "name": alias} for alias in self.extensions]}
        if path == "/subnets":
            return 200, self._page(query)
        kind, _, uuid = path.lstrip("/").partition("/")
        found = {"ports": self.ports, "subnets": self.subnets}.get(kind, {}).get(uuid)
        if found is None:
            name = f"{kind.removesuffix('s').capitalize()}NotFound"
            return 404, {"NeutronError": {"type": name, "message": f"no {uuid}", "detail": ""}}
        return 200, {kind.removesuffix("s"): _select(found, query)}

    def _page(self, query):
        found = [each for each in self.subnets.values() if each["network_id"] in query.get("network_id", [])]
        uuids = [each["id"] for each in found]
        begin = uuids.index(query["marker"][0]) + 1 if "marker" in query else 0
        page = found[begin : begin + self.page_size]
        body = {"subnets": [_select(each, query) for each in page]}
        if begin + self.page_size < len(found):
            link = f"{self.url}/v2.0/subnets?network_id={page[0]['network_id']}&marker={page[-1]['id']}"
            body["subnets_links"] = [{"rel": "next", "href": f"{link}&fields=segment_id"}]
        return body


def _select(record, query):
    return {name: record[name] for name in query.get("fields", record) if name in record}


@contextmanager
def neutron():
    """Run a Neutron in this process; yield its records, with its address ``url``."""
    records = Neutron()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):  # the name of the standard library
            records.requests.append(self.path)
            records.gate.wait(30)
            if records.is_silent:
                self.close_connection = True
                return
            status, body = records.answer(self.path)
            if records.token not in {None, self.headers.get("x-auth-token")}:
                status, body = 401, {"error": {"code": 401}}
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    records.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield records
    finally:
        records.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()
