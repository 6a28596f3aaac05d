"""Sessions of browsers, over real servers."""

import http.client
import json
import time
from contextlib import closing, contextmanager

import pytest

from roost.api.access.authentication import as_toml, new_token
from roost.api.access.browser_session import KEY_BYTES, NONCE_BYTES, TOKEN_BYTES_MAX, encode_base64url, seal
from roost.api.access.policy import Policy
from roost.api.v1.policies import DEFAULTS
from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.certificates import Authority, needs_openssl
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve
from tests.support.servers.token_files import write_tokens
from tests.support.wait import wait_until

TOKENS = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"\n'
ROLES = {"ada": ("admin",), "olga": ("observer",), "rita": ("reader",), "nick": ("unheard-of",), "zero": ()}
ANY = "http://anywhere.example"


class Browser:
    """A page of a server: its cookie and its key."""

    def __init__(self, server, token, *, host="", headers=None):
        self.server = server
        self.host = host or f"127.0.0.1:{server.port}"
        self.sent = {"host": self.host, **(headers or {})}
        self.status, self.received, self.body = server.ask(
            "POST", "/v1/session", headers={**self.sent, "x-auth-token": token}
        )
        self.cookie, _, self.attributes = self.received.get("set-cookie", "").partition("; ")
        self.key = self.body.get("key", "")

    def headers(self, **more):
        """Return the headers of a request of the page; None leaves one out."""
        found = {
            **self.sent,
            "cookie": self.cookie,
            "x-roost-session-key": self.key,
            "origin": f"http://{self.host}",
            "sec-fetch-site": "same-origin",
        }
        found |= {name.replace("_", "-"): text for name, text in more.items()}
        return {name: text for name, text in found.items() if text is not None}

    def ask(self, method, path, body=None, *, server=None, **more):
        """Send a request; return status and body."""
        status, _, received = (server or self.server).ask(method, path, body, headers=self.headers(**more))
        return status, received


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a database of two hosts, and a file of tokens."""
    folder = tmp_path_factory.mktemp("sessions")
    with open_roost(None, folder) as product:
        product.install(fleet(2, vcpus=4))
    return folder


@pytest.fixture(scope="module")
def tokens(folder):
    """Tokens by user."""
    return write_tokens(folder, ROLES)[0]


@pytest.fixture
def other_folder(folder, tokens, tmp_path):
    """An empty folder with the same file of tokens, for another server."""
    assert tokens
    (tmp_path / "tokens.toml").write_bytes((folder / "tokens.toml").read_bytes())
    return tmp_path


@pytest.fixture(scope="module")
def server(folder, tokens):
    assert tokens
    cors = f'cors_allowed_origin = ["{ANY}", "*"]\ncors_allow_headers = ["x-roost-session-key", "x-auth-token"]\n'
    with serve(noun="up", folder=folder, settings=TOKENS + cors) as running:
        yield running


def test_page_signs_in_reads_changes_and_signs_out(server, tokens):
    before_s = int(time.time())
    browser = Browser(server, tokens["ada"])
    assert (browser.status, browser.received["cache-control"]) == (201, "no-store")
    assert browser.cookie.startswith(f"__Host-roost-{server.port}=")
    assert browser.attributes == "Max-Age=43200; Path=/; HttpOnly; SameSite=Strict; Secure"
    assert 0 <= browser.body["expires_at_s"] - before_s - 43200 <= 60
    assert browser.ask("GET", "/v1/hosts")[0] == 200
    assert browser.ask("PUT", "/v1/flavors/small", {"vcpus": 1})[0] == 200
    (change,) = browser.ask("GET", "/v1/changes?limit=1")[1]["changes"]
    assert (change["kind"], change["user_id"]) == ("flavor.create", "ada")
    status, received, _ = server.ask("DELETE", "/v1/session", headers=browser.headers())
    assert (status, received["set-cookie"]) == (
        204,
        f"__Host-roost-{server.port}=; {browser.attributes}".replace("43200", "0"),
    )


@pytest.mark.parametrize("name", ROLES)
def test_every_client_learns_its_permissions(server, tokens, name):
    browser = Browser(server, tokens[name])
    _, shown = browser.ask("GET", "/v1/session")
    assert shown == {each: value for each, value in browser.body.items() if each != "key"}
    assert (shown["user_id"], shown["project_id"], shown["roles"]) == (name, "shop", sorted(ROLES[name]))
    assert (shown["is_system_scoped"], shown["is_plain_http"]) == (False, False)
    _, _, plain = server.ask("GET", "/v1/session", headers={"x-auth-token": tokens[name]})
    assert plain == {**shown, "expires_at_s": None}
    assert {"roost:session:create", "roost:session:show"} <= set(shown["policies"])
    assert shown["policies"] == sorted(shown["policies"])
    for policy, path in (("roost:hosts:list", "/v1/hosts"), ("roost:instances:list", "/v1/instances")):
        assert browser.ask("GET", path)[0] == (200 if policy in shown["policies"] else 403)
    assert ("roost:flavors:update" in shown["policies"]) == (name == "ada")


def test_policies_of_an_administrator_are_all_policies():
    with roost_api() as own:
        shown = own.get("/session", headers={"x-auth-token": "admin"}).json
        assert set(shown["policies"]) == {name for name in DEFAULTS if name.startswith("roost:")}


def test_policy_file_can_restrict_sessions():
    rules = Policy({"roost:session:create": "role:admin"}, others=DEFAULTS)
    with roost_api(policy=rules) as own:
        assert own.post("/session", headers={"x-auth-token": "bob"}).status == 403
        assert own.get("/session", headers={"x-auth-token": "bob"}).json["policies"] == ["roost:session:show"]


@pytest.mark.parametrize(
    ("more", "statuses"),
    [
        ({"x_roost_session_key": None}, (401, 401)),
        ({"cookie": None}, (401, 401)),
        ({"x_roost_session_key": encode_base64url(bytes(KEY_BYTES))}, (401, 401)),
        ({"x_roost_session_key": "nonsense"}, (401, 401)),
        ({"origin": None}, (200, 403)),
        ({"origin": ANY}, (403, 403)),
        ({"origin": ANY, "sec_fetch_site": None}, (403, 403)),
        ({"origin": None, "sec_fetch_site": "cross-site"}, (403, 403)),
        ({"sec_fetch_site": "same-site"}, (403, 403)),
        ({"sec_fetch_site": None}, (200, 200)),
        ({"host": "roost.example"}, (403, 403)),
        ({"x_auth_token": "wrong"}, (401, 401)),
    ],
)
def test_cookie_works_only_with_its_key_on_pages_of_the_server(server, tokens, more, statuses):
    """The settings allow every origin; the cookie works for none of them."""
    browser = Browser(server, tokens["ada"])
    found = [
        browser.ask("GET", "/v1/flavors", **more)[0],
        browser.ask("PUT", "/v1/flavors/small", {"vcpus": 1}, **more)[0],
    ]
    assert tuple(found) == statuses


def test_token_works_for_other_origins_and_a_session_cannot_begin_there(server, tokens):
    headers = {"x-auth-token": tokens["ada"], "origin": ANY, "sec-fetch-site": "cross-site"}
    assert server.ask("GET", "/v1/flavors", headers=headers)[0] == 200
    for method in ("POST", "DELETE"):
        status, received, problem = server.ask(method, "/v1/session", headers=headers)
        assert (status, "set-cookie" in received, problem["type"]) == (403, False, "/v1/errors#forbidden")


def test_session_of_the_placement_api_does_not_exist(server, tokens):
    assert Browser(server, tokens["ada"]).ask("GET", "/placement/resource_providers")[0] == 401


def test_session_cannot_extend_itself(server, tokens):
    status, problem = Browser(server, tokens["ada"]).ask("POST", "/v1/session")
    assert (status, problem["detail"]) == (403, "a session cannot begin another session; send x-auth-token")


def test_each_session_has_a_key_of_its_own(server, tokens):
    first, second = Browser(server, tokens["ada"]), Browser(server, tokens["ada"])
    assert first.key != second.key
    assert first.ask("GET", "/v1/session")[0] == second.ask("GET", "/v1/session")[0] == 200
    assert first.ask("GET", "/v1/session", x_roost_session_key=second.key)[0] == 401
    both = f"{first.cookie}; {second.cookie}"
    assert second.ask("GET", "/v1/session", cookie=both)[0] == 200


def test_unknown_client_learns_the_authentication_of_the_server(server):
    for headers in ({}, {"x-auth-token": "wrong"}, {"x-roost-session-key": "wrong", "cookie": "a=b"}):
        status, _, problem = server.ask("GET", "/v1/session", headers=headers)
        assert (status, problem["type"], problem["auth_strategy"]) == (401, "/v1/errors#unauthenticated", "tokens")
    assert server.ask("POST", "/v1/session", headers={})[0] == 401


def test_end_of_a_session_needs_no_identity_and_open_documents_ignore_it(server):
    ended = {"cookie": f"__Host-roost-{server.port}=ended", "x-roost-session-key": "ended"}
    assert server.ask("DELETE", "/v1/session", headers=ended)[0] == 204
    assert server.ask("DELETE", "/v1/session", headers={})[0] == 204
    assert server.ask("GET", "/v1/openapi.json", headers=ended)[0] == 200
    assert server.ask("DELETE", "/v1/session?all=true", headers={})[0] == 400


def test_huge_cookie_exceeds_the_limit_of_a_head(server, tokens):
    browser = Browser(server, tokens["ada"])
    name = browser.cookie.partition("=")[0]
    assert browser.ask("GET", "/v1/session", cookie=f"{name}={'A' * 60_000}")[0] == 401
    head = f"GET /v1/session HTTP/1.1\r\nhost: localhost\r\ncookie: {name}={'A' * 2**20}\r\n\r\n"
    assert server.raw(head.encode()).startswith(b"HTTP/1.1 431 ")


def test_sealed_text_cannot_add_headers(server):
    """A client seals any text with its own key."""
    key = bytes(KEY_BYTES)
    for text in ("x\r\nx-roles: admin", "x\nset-cookie: a=b", "\0"):
        cookie = seal(text, key, expires_at_s=int(time.time()) + 60, nonce=bytes(NONCE_BYTES))
        headers = {"cookie": f"__Host-roost-{server.port}={cookie}", "x-roost-session-key": encode_base64url(key)}
        status, received, _ = server.ask("GET", "/v1/session", headers=headers)
        assert (status, {"x-roles", "set-cookie"} & set(received)) == (401, set())


def test_name_of_the_host_cannot_add_attributes(server, tokens):
    for host in ("a.example:80;domain=b", "a.example:1=2", "a.example:"):
        _, received, _ = server.ask("POST", "/v1/session", headers={"host": host, "x-auth-token": tokens["ada"]})
        assert received["set-cookie"].startswith("roost-80=")
        assert received["set-cookie"].endswith("; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict")


def test_secrets_never_reach_the_log(other_folder, tokens):
    with serve(noun="up", folder=other_folder, settings=TOKENS + "log_requests = true\n") as logged:
        browser = Browser(logged, tokens["ada"])
        assert browser.ask("PUT", "/v1/flavors/small", {"vcpus": 2})[0] == 200
        assert browser.ask("GET", "/v1/session", origin=ANY)[0] == 403
        assert browser.ask("GET", "/v1/session", x_roost_session_key=browser.key[::-1])[0] == 401
        assert browser.ask("POST", "/v1/capacity", {"request": {"flavor": {"vcpus": 1}}})[0] == 200
        logged.stop()
    begins = [line for line in map(json.loads, logged.errors) if line["event"] == "session_begins"]
    assert [(line["user"], line["project"], line["roles"]) for line in begins] == [("ada", "shop", "admin")]
    value = browser.cookie.partition("=")[2]
    for secret in (browser.key, browser.key[::-1], value, value[:40], tokens["ada"]):
        assert secret not in logged.said
        assert all(secret.encode() not in path.read_bytes() for path in other_folder.glob("roost.db*"))


def test_session_ends_after_its_time(other_folder, tokens):
    with serve(noun="up", folder=other_folder, settings=TOKENS + "session_hours = 0.001\n") as server:
        browser = Browser(server, tokens["ada"])
        assert browser.attributes.startswith("Max-Age=3;")
        assert browser.ask("GET", "/v1/session")[0] == 200
        wait_until(lambda: browser.ask("GET", "/v1/session")[0] == 401)
        assert time.time() >= browser.body["expires_at_s"]
        assert browser.ask("GET", "/v1/session")[1]["detail"].endswith("sign in again")
        assert browser.ask("DELETE", "/v1/session")[0] == 204


def test_revoked_token_ends_its_sessions(tmp_path):
    (first, stored), (second, other) = new_token("first"), new_token("second")
    path = tmp_path / "tokens.toml"
    path.write_text(as_toml(stored) + as_toml(other))
    with serve(noun="up", folder=tmp_path, settings=TOKENS) as server:
        browsers = [Browser(server, first), Browser(server, second)]
        path.write_text(as_toml(other))
        wait_until(lambda: browsers[0].ask("GET", "/v1/session")[0] == 401)
        assert browsers[1].ask("GET", "/v1/session")[0] == 200


def test_servers_behind_one_address_share_sessions(server, other_folder, tokens):
    with serve(noun="up", folder=other_folder, settings=TOKENS) as other:
        shared = Browser(server, tokens["ada"], host="roost.example")
        assert shared.body["is_plain_http"] is True
        assert [shared.ask("GET", "/v1/session", server=each)[0] for each in (server, other)] == [200, 200]
        own = Browser(server, tokens["ada"])
        there = f"127.0.0.1:{other.port}"
        status, _ = own.ask("GET", "/v1/session", server=other, host=there, origin=f"http://{there}")
        assert status == 401  # the cookie has the port of the first server


def test_proxy_that_terminates_tls_needs_no_further_headers(server, tokens):
    browser = Browser(server, tokens["ada"], host="roost.example", headers={"origin": "https://roost.example"})
    assert (browser.body["is_plain_http"], browser.cookie[:17]) == (False, "__Host-roost-443=")
    assert browser.ask("GET", "/v1/session", origin=None)[0] == 200
    assert browser.ask("PUT", "/v1/flavors/small", {"vcpus": 1}, origin="https://roost.example")[0] == 200
    other = server.ask(
        "POST", "/v1/session", headers={"x-auth-token": tokens["ada"], "origin": "https://roost.example"}
    )
    assert (other[0], other[2]["detail"].endswith("a proxy must forward the header host")) == (403, True)


def test_tokens_over_plain_http_have_a_cookie_that_is_not_secure(other_folder, tokens):
    settings = TOKENS + "allow_plain_http = true\n"
    with serve(noun="up", folder=other_folder, settings=settings, listen="0.0.0.0:0") as server:
        browser = Browser(server, tokens["ada"], host=f"192.0.2.1:{server.port}")
        assert (browser.body["is_plain_http"], browser.cookie.partition("=")[0]) == (True, f"roost-{server.port}")
        assert browser.attributes == "Max-Age=43200; Path=/; HttpOnly; SameSite=Strict"
        assert browser.ask("PUT", "/v1/flavors/small", {"vcpus": 1}, sec_fetch_site=None)[0] == 200


def test_noauth2_has_sessions_and_permissions_too(tmp_path):
    with serve(noun="up", folder=tmp_path) as server:
        assert server.ask("GET", "/v1/session", headers={})[2]["auth_strategy"] == "noauth2"
        shown = server.ask("GET", "/v1/session", headers={"x-auth-token": "bob:shop", "x-roles": "reader"})[2]
        assert (shown["user_id"], shown["project_id"], shown["roles"]) == ("bob", "shop", ["reader"])
        assert Browser(server, "admin").ask("GET", "/v1/hosts")[0] == 200
        longest = Browser(server, "u" * TOKEN_BYTES_MAX)
        assert longest.ask("GET", "/v1/session")[1]["user_id"] == "u" * TOKEN_BYTES_MAX
        too_long = Browser(server, "u" * (TOKEN_BYTES_MAX + 1))
        assert (too_long.status, too_long.received.get("set-cookie")) == (400, None)
        assert too_long.body["detail"] == "the token has 2,871 bytes; a cookie has room for 2,870"


@contextmanager
def connect_tls(server, authority):
    """Return a function that sends a request over TLS."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=authority.trusting(), timeout=30)

    def ask(method, path, **headers):
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read() or b"null")

    with closing(connection):
        yield ask


@needs_openssl
@pytest.mark.long
def test_tls_server_accepts_only_secure_cookies_and_origins(other_folder, tokens):
    authority = Authority(other_folder)
    cert, key = authority.issue("server")
    arguments = ("--tls-cert", cert, "--tls-key", key)
    with (
        serve(*arguments, noun="up", folder=other_folder, settings=TOKENS) as server,
        connect_tls(server, authority) as ask,
    ):
        status, received, body = ask("POST", "/v1/session", x_auth_token=tokens["ada"])
        cookie, _, attributes = received["set-cookie"].partition("; ")
        assert (status, body["is_plain_http"], attributes.endswith("; Secure")) == (201, False, True)
        assert cookie.startswith(f"__Host-roost-{server.port}=")
        origin = f"https://127.0.0.1:{server.port}"
        session = {"cookie": cookie, "x_roost_session_key": body["key"]}
        assert ask("GET", "/v1/session", **session)[0] == 200
        assert ask("DELETE", "/v1/flavors/small", **session, origin=origin)[0] in {204, 404}
        assert ask("DELETE", "/v1/flavors/small", **session, origin=origin.replace("https", "http"))[0] == 403
        assert ask("GET", "/v1/session", **{**session, "cookie": cookie.removeprefix("__Host-")})[0] == 401
