"""The examples for nginx and HAProxy work: requests, polls of agents, streams of events, and a dead server."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from tests.support.debian_packages import HOW_TO_INSTALL, find_program
from tests.support.fleets.products import ROOT, command, environ, kill
from tests.support.missing_programs import skip_test
from tests.support.servers.certificates import Authority, needs_openssl
from tests.support.servers.servers import ADMIN, serve
from tests.support.wait import wait_until

pytestmark = [needs_openssl, pytest.mark.long]

FOLDER = ROOT / "deploy" / "proxy"
NAME = "roost.example.org"
NGINX = """daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/roost.conf;
}}
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def server(authority, tmp_path):
    """A server with TLS."""
    cert, key = authority.issue("server", names=(NAME,))
    settings = f'allowed_hosts = ["{NAME}"]'
    with serve("--tls-cert", cert, "--tls-key", key, noun="up", folder=tmp_path, settings=settings) as running:
        yield running


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def adapt(text, *, port, server_port, authority, folder):
    """Return an example with the addresses and certificates of this test; one of its two servers is dead."""
    text = re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE)
    cert, key = authority.issue("proxy", names=(NAME,))
    (folder / "both.pem").write_text(cert.read_text() + key.read_text())
    changes = {
        "roost-1:8780": f"127.0.0.1:{free_port()}",
        "roost-2:8780": f"127.0.0.1:{server_port}",
        "listen 443": f"listen 127.0.0.1:{port}",
        "bind :443": f"bind 127.0.0.1:{port}",
        "crt /etc/roost/proxy.pem": f"crt {folder / 'both.pem'}",
        "/etc/roost/proxy.pem": str(cert),
        "/etc/roost/proxy.key": str(key),
        "/etc/roost/ca.pem": str(authority.cert),
    }
    for old, new in changes.items():
        text = text.replace(old, new)
    assert "/etc/" not in text
    assert not re.search(r"\b443\b", text)
    return text


def nginx_command(text, folder):
    (folder / "roost.conf").write_text(text)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    return [find_program("nginx"), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")], ["-t"]


def haproxy_command(text, folder):
    (folder / "haproxy.cfg").write_text(text)
    return [find_program("haproxy"), "-f", str(folder / "haproxy.cfg")], ["-c"]


PROXIES = {"nginx": ("nginx.conf", nginx_command), "haproxy": ("haproxy.cfg", haproxy_command)}


@pytest.fixture(params=PROXIES)
def proxy(request, server, authority, tmp_path):
    """The port of a running proxy in front of the server."""
    if find_program(request.param) is None:
        skip_test(f"{request.param} is not installed: {HOW_TO_INSTALL}")
    example, prepare = PROXIES[request.param]
    port = free_port()
    text = adapt(
        (FOLDER / example).read_text(), port=port, server_port=server.port, authority=authority, folder=tmp_path
    )
    words, check = prepare(text, tmp_path)
    checked = subprocess.run([*words, *check], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "[warn" not in (checked.stdout + checked.stderr).lower()
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        kill(process)


@pytest.fixture
def connect(proxy, authority):
    """Return a new connection to the proxy; its certificate is checked."""

    def connect():
        return closing(http.client.HTTPSConnection("127.0.0.1", proxy, context=authority.trusting(), timeout=60))

    def is_up():
        try:
            return ask(connect, "GET", "/healthz")[0] == 200
        except OSError:
            return False

    wait_until(is_up, within_s=30.0)
    return connect


def ask(connect, method, path, body=None):
    """Send a request; return its status and body."""
    with connect() as connection:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, body=data, headers={**ADMIN, "content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_requests_reach_the_live_server_and_metrics_stay_inside(connect):
    assert {ask(connect, "GET", "/v1/hosts")[0] for _ in range(6)} == {200}
    assert ask(connect, "GET", "/v1/flavors/a%2Fb")[0] == 404
    assert b"a/b" in ask(connect, "GET", "/v1/flavors/a%2Fb")[1]
    for path in ("/metrics", "/readyz", "/%6Detrics", "/%72eadyz"):
        assert ask(connect, "GET", path)[0] == 404, path


def test_events_leave_the_proxy_at_once(connect):
    with connect() as connection:
        connection.request("GET", "/v1/events", headers=ADMIN)
        stream = connection.getresponse()
        assert stream.status == 200
        assert stream.readline() == b"retry: 1000\n"
        assert ask(connect, "POST", "/v1/decisions", {"flavor": {"name": "f", "vcpus": 1}})[0] == 201
        while not (line := stream.readline()).startswith(b"event: "):
            assert line, "the stream ended"


def test_agent_behind_the_proxy_polls_and_builds(connect, proxy, authority, tmp_path):
    agent = subprocess.Popen(
        command(
            "agent",
            "--server",
            f"https://127.0.0.1:{proxy}",
            "--driver",
            "fake",
            "--host",
            "host-1",
            "--state-dir",
            tmp_path,
        ),
        env=environ(SSL_CERT_FILE=str(authority.cert)),
        stdout=subprocess.DEVNULL,
        stderr=sys.stderr,
    )
    try:
        wait_until(lambda: ask(connect, "GET", "/v1/hosts/host-1")[0] == 200)
        body = {"name": "web", "flavor": {"name": "f", "vcpus": 1, "memory_mb": 64}}
        status, answer = ask(connect, "POST", "/v1/instances", body)
        assert status == 202, answer
        (uuid,) = json.loads(answer)["instances"]
        wait_until(lambda: json.loads(ask(connect, "GET", f"/v1/instances/{uuid}")[1])["status"] == "ACTIVE")
    finally:
        kill(agent)
