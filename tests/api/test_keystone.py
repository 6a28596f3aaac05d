"""Who asks, as a Keystone says that runs beside the server."""

import http.client
import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.support.fleets.products import ROOT
from tests.support.servers.keystones import SERVICE_PASSWORD
from tests.support.servers.servers import serve

pytest.importorskip("keystonemiddleware", reason="the extra roost[keystone] is not installed")


class FakeKeystone:
    """One that runs, in a process of its own."""

    def __init__(self, process):
        self.process = process
        self.port = int(process.stdout.readline())

    def asked(self):
        """Say how often it was asked about a token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/count")
        found = json.loads(connection.getresponse().read())["asked"]
        connection.close()
        return found


@contextmanager
def running():
    process = subprocess.Popen(
        [sys.executable, ROOT / "tests" / "support" / "servers" / "keystones.py"], stdout=subprocess.PIPE, text=True
    )
    try:
        yield FakeKeystone(process)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def conf_of(keystone, folder, *, password=SERVICE_PASSWORD, more=""):
    path = folder / "placement.conf"
    path.write_text(f"""
[api]
auth_strategy = keystone
[keystone_authtoken]
auth_url = http://127.0.0.1:{keystone.port}/v3
www_authenticate_uri = http://identity.example/v3
auth_type = password
username = placement
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
http_request_max_retries = 0
{more}
""")
    return path


@pytest.fixture(scope="module")
def keystone():
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def server(keystone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keystone")
    with serve("--conf", conf_of(keystone, folder), folder=folder) as found:
        yield found


def status(server, token, path="/resource_providers", **more):
    headers = {"openstack-api-version": "placement 1.39", **({} if token is None else {"x-auth-token": token}), **more}
    return server.ask("GET", path, headers=headers)[0]


def test_tokens_are_what_keystone_says_they_are(server):
    assert status(server, "service-token") == 200
    assert status(server, "admin-token") == 200
    assert status(server, "reader-token") == 403
    assert status(server, "system-token") == 403
    for unknown in ("nobody", "old-token", "", None, "é".encode().decode("latin-1")):
        assert status(server, unknown) == 401


def test_what_a_client_says_of_itself_is_not_believed(server):
    assert status(server, "reader-token", **{"x-roles": "admin", "x-user-id": "u"}) == 403
    assert status(server, None, **{"x-roles": "admin", "x-user-id": "u", "x-identity-status": "Confirmed"}) == 401


def test_an_unknown_client_is_told_where_keystone_is(server):
    answered, headers, _ = server.ask("GET", "/resource_providers", headers={})
    assert (answered, "identity.example" in headers["www-authenticate"]) == (401, True)
    assert "x-openstack-request-id" in headers


def test_the_versions_are_told_to_anybody(server):
    assert status(server, None, "/") == 200
    assert status(server, "nobody", "/") == 200


def test_a_token_is_asked_about_once(server, keystone):
    status(server, "admin-token")
    before = keystone.asked()
    for _ in range(5):
        assert status(server, "admin-token") == 200
    assert keystone.asked() == before


def test_a_keystone_that_is_gone_is_a_matter_of_later(tmp_path):
    with running() as gone:
        path = conf_of(gone, tmp_path)
        with serve("--conf", path, folder=tmp_path) as server:
            assert status(server, "admin-token") == 200
            gone.process.kill()
            gone.process.wait()
            assert status(server, "reader-token") == 503
            assert status(server, "admin-token") == 200  # It was asked about before.
            assert status(server, None, "/") == 200


def test_a_service_that_keystone_does_not_know_lets_nobody_in(keystone, tmp_path):
    with serve("--conf", conf_of(keystone, tmp_path, password="wrong"), folder=tmp_path) as server:
        assert status(server, "admin-token") in {401, 503}
        assert server.process.poll() is None


def test_a_member_of_a_project_sees_that_project_and_a_reader_of_the_system_sees_all(keystone, tmp_path):
    conf = conf_of(keystone, tmp_path)
    with serve("--conf", conf, noun="up", folder=tmp_path) as server:
        for project in ("p1", "p2"):
            asked = {"flavor": {"vcpus": 1}, "project_id": project}
            assert server.ask("POST", "/v1/decisions", asked, headers={"x-auth-token": "admin-token"})[0] == 201

        def ask(path, token):
            status, _, answered = server.ask("GET", f"/v1/{path}", headers={"x-auth-token": token})
            return status, answered

        assert len(ask("decisions", "reader-token")[1]["decisions"]) == 1
        assert ask("hosts", "reader-token")[0] == 403
        assert len(ask("decisions", "system-reader-token")[1]["decisions"]) == 2
        assert ask("hosts", "system-reader-token")[0] == 200
