"""The application of the dashboard: paths, headers, files and missing libraries."""

import asyncio
import base64
import gzip
import hashlib
import json
import re
from importlib import resources
from urllib.parse import urljoin

import pytest

from roost.dashboard.dashboard_site import DashboardSite
from roost.dashboard.static_files import LibrariesMissing, read_files

FOLDER = resources.files("roost.dashboard").joinpath("static")


def refuse_evil(headers):
    return (421, "evil is not a name of this server") if headers.get("host") == "evil" else None


def ask(path, *, method="GET", scheme="http", site=None, **headers):
    """Send one request; return status, headers and body."""
    site = site or DashboardSite(authentication="tokens", version="1.2.3", check_origin=refuse_evil)
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "scheme": scheme, "headers": encoded}
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(site(scope, None, send))
    start, end = sent
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, end["body"]


def base_of(page):
    return re.search(r'<script type="module" src="([^"]*)main\.js"', page)[1]


@pytest.mark.parametrize("path", ["/", "/ui"])
def test_root_leads_to_the_dashboard(path):
    status, headers, _ = ask(path)
    assert (status, headers["location"]) == (307, "/ui/")


@pytest.mark.parametrize("path", ["/ui/", "/ui/decisions", "/ui/hosts/a%2Fb"])
def test_every_other_path_is_the_page(path):
    status, headers, body = ask(path)
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert '<meta name="roost-authentication" content="tokens">' in body.decode()
    assert "{{" not in body.decode()


def test_policy_allows_the_import_map_alone_beside_files_of_the_server():
    _, headers, body = ask("/ui/")
    policy = headers["content-security-policy"]
    (script,) = re.findall(r"<script type=\"importmap\">(.*?)</script>", body.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    # Nothing else is inline: no further script, no style and no handler.
    assert re.findall(r"<script(?! type=\"importmap\"| type=\"module\" src=)|<style| on\w+=", body.decode()) == []


def test_files_of_the_import_map_are_modules_for_ever():
    _, _, body = ask("/ui/")
    page = body.decode()
    imports = json.loads(re.search(r"importmap\">(.*?)</script>", page)[1])["imports"]
    assert set(imports) >= {"preact", "preact/hooks", "@preact/signals", "uplot", "eventsource-parser"}
    for path in (*imports.values(), f"{base_of(page)}main.js", f"{base_of(page)}page/api.js"):
        status, headers, text = ask(path)
        assert status == 200, path
        assert headers["content-type"] == "text/javascript; charset=utf-8"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "public, max-age=31536000, immutable"
        assert headers["content-length"] == str(len(text))


def test_bodies_are_compressed_for_clients_that_accept_it():
    _, plain, body = ask("/ui/")
    _, headers, compressed = ask("/ui/", accept_encoding="br, gzip")
    assert "content-encoding" not in plain
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(compressed) == body
    assert headers["vary"] == "accept-encoding"


def test_head_has_the_headers_of_get_without_a_body():
    _, expected, body = ask("/ui/")
    status, headers, empty = ask("/ui/", method="HEAD")
    assert (status, headers, empty) == (200, expected, b"")
    assert body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(method):
    status, headers, _ = ask("/ui/", method=method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "page.html", "libraries/stamp.json", "", "page/", "page/../page.html", "%2e%2e/x"]
)
def test_only_known_names_are_files(name):
    _, _, body = ask("/ui/")
    assert ask(base_of(body.decode()) + name)[0] == 404


def test_files_of_another_version_are_gone():
    assert ask("/ui/static/0123456789abcdef/main.js")[0] == 404


def test_foreign_host_names_are_refused():
    status, headers, body = ask("/ui/", host="evil")
    assert (status, body) == (421, b"evil is not a name of this server\n")
    assert headers["x-content-type-options"] == "nosniff"
    assert ask("/ui/", host="localhost")[0] == 200


def test_tls_asks_for_tls_next_time():
    assert "strict-transport-security" in ask("/ui/", scheme="https")[1]
    assert "strict-transport-security" not in ask("/ui/")[1]


def test_without_libraries_the_page_says_what_to_do(tmp_path, monkeypatch):
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "page.html").write_text("{{imports}}")
    with pytest.raises(LibrariesMissing, match="run `make web`"):
        read_files(folder, prefix="/ui", facts={})
    monkeypatch.setattr("roost.dashboard.dashboard_site.resources.files", lambda _package: tmp_path)
    site = DashboardSite(authentication="noauth2", version="1", check_origin=refuse_evil)
    status, _, body = ask("/ui/", site=site)
    assert status == 503
    assert body.startswith(b"the dashboard has no libraries/preact.js: run `make web`")
    assert ask("/", site=site)[0] == 307


def test_no_file_of_the_page_names_another_host():
    files = read_files(FOLDER, prefix="/ui", facts={"authentication": "x", "version": "1"})
    own = {name: each.body.decode() for name, each in files.by_name.items() if not name.startswith("libraries/")}
    found = {name: re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text) for name, text in own.items()}
    assert {name: urls for name, urls in found.items() if urls} == {}


def test_modules_of_the_first_page_are_loaded_at_once():
    _, _, body = ask("/ui/")
    page = body.decode()
    base = base_of(page)
    preloaded = re.findall(r'<link rel="modulepreload" href="([^"]*)">', page)
    assert len(set(preloaded)) == len(preloaded)
    assert {f"{base}main.js", f"{base}fleet/map_painter.js", f"{base}libraries/preact.js"} <= set(preloaded)
    assert f"{base}decision/decision_view.js" not in preloaded  # The page imports it later.
    assert preloaded[:2] == [f"{base}page/early.js", f"{base}page/credentials.js"]  # They request the fleet.
    imports = json.loads(re.search(r'<script type="importmap">(.*?)</script>', page)[1])["imports"]
    for path in preloaded:
        status, _, module = ask(path)
        assert status == 200
        for target in re.findall(r'from\s*"([^"]+)"', module.decode()):
            assert imports.get(target) or urljoin(path, target) in preloaded
