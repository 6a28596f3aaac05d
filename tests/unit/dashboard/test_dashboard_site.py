"""The application of the dashboard: paths, headers, files and missing libraries."""

import base64
import gzip
import hashlib
import json
import re
import shutil
from importlib import resources
from urllib.parse import urljoin

import pytest

from roost.dashboard.dashboard_site import DashboardSite
from roost.dashboard.static_files import LibrariesMissing, read_files
from tests.support.servers import dashboard_files

FOLDER = resources.files("roost.dashboard").joinpath("static")
FOREIGN = ("libraries/", "bundle/")  # the bundle contains the libraries
BUNDLE = {
    "main.js": 'import {\n  a\n} from "./chunk-1.js";\nconst later = () => import("./other_views-2.js");\n',
    "chunk-1.js": 'import { credentials } from "../page/credentials.js";\nexport {\n  a\n};\n',
    "other_views-2.js": 'import { a } from "./chunk-1.js";\n',
}


def refuse_evil(headers):
    return (421, "evil is not a name of this server") if headers.get("host") == "evil" else None


def ask(path, *, site=None, **options):
    """Send one request; return status, headers and body."""
    site = site or DashboardSite(authentication="tokens", version="1.2.3", check_origin=refuse_evil)
    return dashboard_files.ask(site, path, **options)


@pytest.fixture
def serve_files(monkeypatch):
    """Return a function that creates a site with the files of a folder ``static``."""

    def create(static):
        monkeypatch.setattr("roost.dashboard.dashboard_site.resources.files", lambda _package: static.parent)
        return DashboardSite(authentication="noauth2", version="1", check_origin=refuse_evil)

    return create


def base_of(page):
    return re.search(r'<link rel="icon" href="([^"]*)icon\.svg"', page)[1]


def scripts_of(page):
    """Return the modules that a page starts, and those that it loads at once, below its base."""
    base = base_of(page)
    found = (
        re.findall(r'<script type="module" src="([^"]*)"', page),
        re.findall(r'<link rel="modulepreload" href="([^"]*)">', page),
    )
    return tuple([path.removeprefix(base) for path in paths] for paths in found)


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


def test_without_libraries_the_page_says_what_to_do(tmp_path, serve_files):
    folder = dashboard_files.copy_static(tmp_path)
    shutil.rmtree(folder / "libraries")
    with pytest.raises(LibrariesMissing, match="run `make web`"):
        read_files(folder, prefix="/ui", facts={})
    site = serve_files(folder)
    status, _, body = ask("/ui/", site=site)
    assert status == 503
    assert body.startswith(b"the dashboard has no libraries/preact.js: run `make web`")
    assert ask("/", site=site)[0] == 307


def test_no_file_of_the_page_names_another_host():
    files = read_files(FOLDER, prefix="/ui", facts={"authentication": "x", "version": "1"})
    own = {name: each.body.decode() for name, each in files.by_name.items() if not name.startswith(FOREIGN)}
    found = {name: re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text) for name, text in own.items()}
    assert {name: urls for name, urls in found.items() if urls} == {}


def test_modules_of_the_first_page_are_loaded_at_once(tmp_path, serve_files):
    site = serve_files(dashboard_files.copy_static(tmp_path))
    page = ask("/ui/", site=site)[2].decode()
    base = base_of(page)
    started, preloaded = scripts_of(page)
    assert started == ["page/early.js", "main.js"]
    assert len(set(preloaded)) == len(preloaded)
    assert {"main.js", "fleet/map_painter.js", "libraries/preact.js"} <= set(preloaded)
    assert "decision/decision_view.js" not in preloaded  # The page imports it later.
    assert preloaded[:2] == ["page/early.js", "page/credentials.js"]  # They request the fleet.
    imports = json.loads(re.search(r'<script type="importmap">(.*?)</script>', page)[1])["imports"]
    paths = [base + name for name in preloaded]
    for path in paths:
        status, _, module = ask(path, site=site)
        assert status == 200
        for target in re.findall(r'from\s*"([^"]+)"', module.decode()):
            assert target in imports or urljoin(path, target) in paths


def test_bundle_of_the_present_modules_replaces_them(tmp_path, serve_files):
    static = dashboard_files.copy_static(tmp_path)
    dashboard_files.write_bundle(static, BUNDLE)
    site = serve_files(static)
    page = ask("/ui/", site=site)[2].decode()
    started, preloaded = scripts_of(page)
    assert started == ["page/early.js", "bundle/main.js"]
    assert preloaded == ["page/early.js", "page/credentials.js", "bundle/main.js", "bundle/chunk-1.js"]
    for name, text in BUNDLE.items():
        status, headers, body = ask(f"{base_of(page)}bundle/{name}", site=site)
        assert (status, body.decode()) == (200, text)
        assert headers["cache-control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize(
    "change",
    [
        lambda static: (static / "page/early.js").write_text("export const takeEarly = () => null;\n"),
        lambda static: (static / "libraries/preact.js").write_text("export const h = null;\n"),
        lambda static: (static / "fleet/new.js").write_text("export const a = 1;\n"),
        lambda static: (static / "host/numa.js").unlink(),
        lambda static: (static / "bundle/sources.json").unlink(),
    ],
    ids=["module", "library", "new module", "removed module", "no hashes"],
)
def test_bundle_of_other_modules_is_not_served(tmp_path, serve_files, change):
    static = dashboard_files.copy_static(tmp_path)
    dashboard_files.write_bundle(static, BUNDLE)
    change(static)
    site = serve_files(static)
    page = ask("/ui/", site=site)[2].decode()
    assert scripts_of(page)[0] == ["page/early.js", "main.js"]
    assert "bundle/" not in page
    assert ask(f"{base_of(page)}bundle/main.js", site=site)[0] == 404
