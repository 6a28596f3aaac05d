"""OpenTelemetry traces of a real server, received by a collector that decodes the protocol."""

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic, sleep

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACES = "\n[monitoring]\nhas_traces = true"


@contextmanager
def collector():
    """Receive spans; yield the address, and the received spans by name."""
    spans = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            is_zipped = self.headers.get("content-encoding") == "gzip"
            message = ExportTraceServiceRequest.FromString(gzip.decompress(body) if is_zipped else body)
            for resource in message.resource_spans:
                service = values(resource.resource)["service.name"]
                spans.update({span.name: (service, span) for each in resource.scope_spans for span in each.spans})
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", spans
    finally:
        server.shutdown()
        server.server_close()


def values(owner):
    """Return the attributes of a span or a resource."""
    return {each.key: each.value.string_value or each.value.int_value for each in owner.attributes}


def wait_for(spans, *names):
    """Wait until spans with these names have arrived."""
    end_s = monotonic() + 20
    while not spans.keys() >= {*names} and monotonic() < end_s:
        sleep(0.05)
    assert spans.keys() >= {*names}
    return [spans[name][1] for name in names]


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """Return a running server, and the spans that it sends."""
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
    with collector() as (address, spans):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        with serve(noun="up", folder=tmp_path, settings=TRACES) as server:
            yield server, spans


def test_request_is_a_span_in_the_trace_of_its_client(traced):
    server, spans = traced
    headers = {"x-auth-token": "admin", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    status, received, _ = server.ask("POST", "/v1/decisions", {"flavor": {"vcpus": 1}}, headers=headers)
    assert status == 201
    span, queue, work = wait_for(spans, "POST /v1/decisions", "queue", "deciding thread")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert queue.parent_span_id == work.parent_span_id == span.span_id
    assert span.start_time_unix_nano <= queue.start_time_unix_nano <= queue.end_time_unix_nano
    assert queue.end_time_unix_nano == work.start_time_unix_nano < work.end_time_unix_nano <= span.end_time_unix_nano
    assert spans["queue"][0] == "roost"
    expected = {"http.request.method": "POST", "http.route": "/v1/decisions", "http.response.status_code": 201}
    assert values(span).items() >= {**expected, "roost.request_id": received["x-openstack-request-id"]}.items()


def test_explanation_has_the_time_of_the_reader(traced):
    server, spans = traced
    uuid = server.ask("POST", "/v1/decisions", {"flavor": {"vcpus": 1}})[2]["uuid"]
    assert server.ask("GET", f"/v1/decisions/{uuid}/why")[0] == 200
    (part,) = wait_for(spans, "reader process")
    assert part.end_time_unix_nano > part.start_time_unix_nano


def test_spans_contain_no_secret_of_a_browser_session(traced):
    server, spans = traced
    _, received, session = server.ask("POST", "/v1/session", headers={"x-auth-token": "admin:secret-token"})
    cookie = received["set-cookie"].partition(";")[0]
    assert server.ask("GET", "/v1/hosts", headers={"cookie": cookie, "x-roost-session-key": session["key"]})[0] == 200
    for span in wait_for(spans, "POST /v1/session", "GET /v1/hosts"):
        assert all(secret not in str(span) for secret in (session["key"], cookie.partition("=")[2], "secret-token"))


def test_server_stops_while_the_collector_is_away(tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with serve(noun="up", folder=tmp_path, settings=TRACES) as server:
        assert server.ask("GET", "/v1/hosts")[0] == 200
        server.process.terminate()
        assert server.process.wait(timeout=20) == 0
