"""Pages of other origins attack a server while its dashboard is open and signed in: they change and read nothing."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve
from tests.support.servers.token_files import write_tokens
from tests.support.wait import wait_until

SECRET = "host-1"  # the name of a host: what a foreign page would like to read
REQUEST = '{"flavor": {"name": "foreign", "vcpus": 1}}'
# The address and other port are the same site, so the browser sends the cookie; the name is another site.
PLACES = ("127.0.0.1", "localhost")
_PAGE = b"<!doctype html><title>foreign</title>"
_FETCHES = """
async ({address, headers, body}) => {
  const attempt = async (method, path, options) => {
    try {
      const response = await fetch(address + path, {method, credentials: "include", ...options});
      return {path, type: response.type, status: response.status, text: await response.text()};
    } catch (error) {
      return {path, type: "error", status: 0, text: ""};
    }
  };
  const json = {"content-type": "application/json"};
  const found = [];
  for (const mode of ["cors", "no-cors"]) {
    for (const path of ["/v1/hosts", "/v1/session", "/v1/decisions", "/v1/fleet/names", "/v1/settings", "/metrics"])
      found.push(await attempt("GET", path, {mode}));
    for (const type of ["text/plain", "application/x-www-form-urlencoded"])
      found.push(await attempt("POST", "/v1/decisions", {mode, body, headers: {"content-type": type}}));
    found.push(await attempt("POST", "/v1/session", {mode}));
  }
  for (const [method, path, text] of [
    ["GET", "/v1/hosts", undefined], ["POST", "/v1/decisions", body], ["POST", "/v1/session", undefined],
    ["PATCH", "/v1/services/host-0", '{"disabled": true}'], ["PUT", "/v1/flavors/foreign", '{"vcpus": 1}'],
    ["DELETE", "/v1/session", undefined],
  ]) found.push(await attempt(method, path, {body: text, headers: {...json, ...headers}}));
  return found;
}
"""
_FORMS = """
(address) => {
  for (const [path, type] of [["/v1/decisions", "text/plain"], ["/v1/session", "text/plain"],
                              ["/v1/operations", "multipart/form-data"], ["/ui/", "text/plain"]]) {
    const frame = document.createElement("iframe");
    const form = document.createElement("form"), field = document.createElement("input");
    frame.name = path;
    Object.assign(form, {action: address + path, method: "POST", enctype: type, target: path});
    // The text of this form is a request: {"flavor": {"vcpus": 1}, "name": "="}.
    Object.assign(field, {name: '{"flavor": {"vcpus": 1}, "name": "', value: '"}'});
    form.append(field);
    document.body.append(frame, form);
    form.submit();
  }
}
"""
_EMBED = """
(address) => Promise.all(["/ui/", "/v1/hosts", "/v1/docs"].map((path) => new Promise((resolve) => {
  const frame = Object.assign(document.createElement("iframe"), {name: path, src: address + path, onload: resolve});
  document.body.append(frame);
})))
"""


@contextmanager
def foreign_site():
    """Run a server of empty pages; yield its port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(_PAGE)

        def log_message(self, *words):
            del words

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as site:
        thread = threading.Thread(target=site.serve_forever, daemon=True)
        thread.start()
        yield site.server_port
        site.shutdown()
        thread.join()


@pytest.fixture(scope="module", params=[False, True], ids=["cors closed", "cors open"])
def attacked(request, tmp_path_factory):
    """Yield a server, tokens of an administrator and an observer, and the port of a site of other pages.

    CORS is closed, as by default, or allows exactly these pages.
    """
    folder = tmp_path_factory.mktemp("attacked")
    tokens, settings = write_tokens(folder, {"ada": ("admin",), "olga": ("observer",)})
    with open_roost(None, folder) as product:
        product.install(fleet(2, vcpus=8))
    with foreign_site() as port:
        if request.param:
            origins = ", ".join(f'"http://{place}:{port}"' for place in PLACES)
            settings += f"cors_allowed_origin = [{origins}]\n"
            settings += 'cors_allow_headers = ["x-roost-session-key", "x-auth-token", "content-type"]\n'
        with serve(noun="up", folder=folder, settings=settings) as server:
            yield server, tokens, port


@pytest.fixture
def victim(attacked, open_tab):
    """The tab of an administrator who is signed in."""
    server, tokens, _ = attacked
    tab = open_tab(server.address)
    page = tab.open("/decisions")
    tab.sign_in(tokens["ada"])
    expect(page.get_by_text("· ada")).to_be_visible()
    return tab


@pytest.fixture(params=PLACES)
def foreign(request, attacked, victim):
    """A page of another origin in the same browser."""
    page = victim.context.new_page()
    page.goto(f"http://{request.param}:{attacked[2]}/")
    return page


@pytest.fixture
def unchanged(attacked, victim):
    """Return a check that the server and the session are as before the attack."""
    server, tokens, _ = attacked

    def state():
        headers = {"x-auth-token": tokens["ada"]}
        paths = ("/decisions", "/changes", "/flavors", "/services", "/operations", "/instances")
        return {path: server.ask("GET", f"/v1{path}", headers=headers)[2] for path in paths}

    before, cookies = state(), victim.context.cookies()
    assert len(cookies) == 1

    def check():
        assert victim.context.cookies() == cookies
        assert state() == before
        victim.page.reload()
        expect(victim.page.get_by_text("· ada")).to_be_visible()

    return check


def send_fetches(page, server, headers):
    """Send requests from a page with and without headers; return what the page learns of each response."""
    return page.evaluate(_FETCHES, {"address": server.address, "headers": headers, "body": REQUEST})


def key_of(victim):
    """Return the key of the session: here it leaks to the attacker, who still lacks the origin."""
    return victim.page.evaluate("localStorage.getItem('roost.session-key')")


def test_fetches_change_and_read_nothing(attacked, victim, foreign, unchanged):
    server, _, _ = attacked
    key = {"x-roost-session-key": key_of(victim)}
    assert key["x-roost-session-key"]
    for headers in ({}, key):
        found = send_fetches(foreign, server, headers)
        assert len(found) == 2 * 9 + 6
        assert [each for each in found if 200 <= each["status"] < 400 or SECRET in each["text"]] == []
    unchanged()


def test_session_of_another_user_does_not_replace_this_one(attacked, foreign, unchanged):
    server, tokens, _ = attacked
    token = {"x-auth-token": tokens["olga"]}
    found = send_fetches(foreign, server, token)
    begun = found[-4]
    assert (begun["path"], begun["status"]) in {("/v1/session", 403), ("/v1/session", 0)}
    unchanged()


def test_forms_change_nothing(attacked, foreign, unchanged):
    server, _, _ = attacked
    statuses = {}
    foreign.on("response", lambda response: statuses.update({response.url: response.status}))
    foreign.evaluate(_FORMS, server.address)
    wait_until(lambda: foreign.wait_for_timeout(50) or len(statuses) == 4, within_s=20)
    assert all(status >= 400 for status in statuses.values()), statuses
    unchanged()


def test_frames_show_nothing(attacked, foreign, unchanged):
    """Without a frame, a page cannot let a person click on a hidden button of the dashboard."""
    server, _, _ = attacked
    foreign.evaluate(_EMBED, server.address)
    texts = [frame.evaluate("document.documentElement.textContent") for frame in foreign.frames[1:]]
    assert len(texts) == 3
    assert [text for text in texts if SECRET in text or "Roost" in text] == []
    unchanged()


def test_same_requests_succeed_on_pages_of_the_server(attacked, victim):
    server, _, _ = attacked
    key = {"x-roost-session-key": key_of(victim)}
    found = send_fetches(victim.page, server, key)
    assert [each["status"] for each in found[-6:]] == [200, 201, 403, 200, 200, 204]
    assert SECRET in found[-6]["text"]
