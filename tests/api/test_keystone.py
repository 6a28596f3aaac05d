"""Authentication by a Keystone that runs beside the server."""

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
    """A fake Keystone in a process of its own."""

    def __init__(self, process):
        self.process = process
        self.port = int(process.stdout.readline())

    def count_validations(self):
        """Return the number of token validations so far."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", "/count")
        count = json.loads(connection.getresponse().read())["asked"]
        connection.close()
        return count


@contextmanager
def run_keystone():
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
    with run_keystone() as running_keystone:
        yield running_keystone


@pytest.fixture(scope="module")
def server(keystone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keystone")
    with serve("--conf", conf_of(keystone, folder), folder=folder) as running_server:
        yield running_server


def status(server, token, path="/resource_providers", **more):
    headers = {"openstack-api-version": "placement 1.39", **({} if token is None else {"x-auth-token": token}), **more}
    return server.ask("GET", path, headers=headers)[0]


def test_roles_come_from_keystone(server):
    assert status(server, "service-token") == 200
    assert status(server, "admin-token") == 200
    assert status(server, "reader-token") == 403
    assert status(server, "system-token") == 403
    for unknown in ("nobody", "old-token", "", None, "é".encode().decode("latin-1")):
        assert status(server, unknown) == 401


def test_identity_headers_of_clients_are_ignored(server):
    assert status(server, "reader-token", **{"x-roles": "admin", "x-user-id": "u"}) == 403
    assert status(server, None, **{"x-roles": "admin", "x-user-id": "u", "x-identity-status": "Confirmed"}) == 401


def test_unauthorized_response_names_the_keystone_url(server):
    code, headers, _ = server.ask("GET", "/resource_providers", headers={})
    assert (code, "identity.example" in headers["www-authenticate"]) == (401, True)
    assert "x-openstack-request-id" in headers


def test_version_document_needs_no_token(server):
    assert status(server, None, "/") == 200
    assert status(server, "nobody", "/") == 200


def test_validated_tokens_are_cached(server, keystone):
    status(server, "admin-token")
    before = keystone.count_validations()
    for _ in range(5):
        assert status(server, "admin-token") == 200
    assert keystone.count_validations() == before


def test_unreachable_keystone_responds_503_except_for_cached_tokens(tmp_path):
    with run_keystone() as gone:
        path = conf_of(gone, tmp_path)
        with serve("--conf", path, folder=tmp_path) as server:
            assert status(server, "admin-token") == 200
            gone.process.kill()
            gone.process.wait()
            assert status(server, "reader-token") == 503
            assert status(server, "admin-token") == 200  # Its validation is cached.
            assert status(server, None, "/") == 200


def test_wrong_service_password_rejects_all_tokens(keystone, tmp_path):
    with serve("--conf", conf_of(keystone, tmp_path, password="wrong"), folder=tmp_path) as server:
        assert status(server, "admin-token") in {401, 503}
        assert server.process.poll() is None


def test_project_members_see_their_project_and_system_readers_see_all(keystone, tmp_path):
    conf = conf_of(keystone, tmp_path)
    with serve("--conf", conf, noun="up", folder=tmp_path) as server:
        for project in ("p1", "p2"):
            request = {"flavor": {"vcpus": 1}, "project_id": project}
            assert server.ask("POST", "/v1/decisions", request, headers={"x-auth-token": "admin-token"})[0] == 201

        def ask(path, token):
            status, _, body = server.ask("GET", f"/v1/{path}", headers={"x-auth-token": token})
            return status, body

        assert len(ask("decisions", "reader-token")[1]["decisions"]) == 1
        assert ask("hosts", "reader-token")[0] == 403
        assert len(ask("decisions", "system-reader-token")[1]["decisions"]) == 2
        assert ask("hosts", "system-reader-token")[0] == 200


def test_browser_sessions_and_401_at_v1_work_with_keystone(keystone, tmp_path):
    with serve("--conf", conf_of(keystone, tmp_path), noun="up", folder=tmp_path) as server:
        begun, received, session = server.ask("POST", "/v1/session", headers={"x-auth-token": "system-reader-token"})
        cookie = received["set-cookie"].partition(";")[0]
        headers = {"cookie": cookie, "x-roost-session-key": session["key"]}
        assert (begun, server.ask("GET", "/v1/hosts", headers=headers)[0]) == (201, 200)
        shown = server.ask("GET", "/v1/session", headers=headers)[2]
        assert (shown["is_system_scoped"], "reader" in shown["roles"]) == (True, True)
        for headers in ({}, {"x-auth-token": "wrong"}):
            refused, received, problem = server.ask("GET", "/v1/session", headers=headers)
            assert (refused, problem["auth_strategy"]) == (401, "keystone")
            assert received["content-type"] == "application/problem+json"
            assert "identity.example" in received["www-authenticate"]
        assert server.ask("DELETE", "/v1/session", headers={})[0] == 204
