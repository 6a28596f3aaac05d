"""The modules of the first page in a real browser: few files with a bundle, and the modules themselves without it."""

import random
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from roost.dashboard.dashboard_site import DashboardSite
from roost.simulator.traces.generated_fleet import generate_fleet
from tests.support.servers import dashboard_files
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

IS_PAINTED = "performance.getEntriesByName('fleet-painted').length"
HAS_ALL_VIEWS = "performance.getEntriesByName('views-loaded').length"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server on a small fleet."""
    folder = tmp_path_factory.mktemp("first-page")
    with open_roost(None, folder) as product:
        product.install(generate_fleet(20, rng=random.Random("first-page"), groups=[]))
    with serve(noun="up", folder=folder) as running:
        yield running
        assert running.problems == []


def list_modules(page):
    """Return the names of the modules that a page requests, from now on."""
    found = []

    def note(request):
        path = urlsplit(request.url).path
        if path.endswith(".js"):
            found.append(path.split("/", 4)[4])

    page.on("request", note)
    return found


def test_first_page_loads_four_modules_and_all_other_views_one_more(server, open_tab):
    tab = open_tab(server.address)
    found = list_modules(tab.page)
    page = tab.open("/?test")
    wait_until(lambda: page.evaluate(IS_PAINTED))
    wait_until(lambda: page.evaluate(HAS_ALL_VIEWS))
    names = [name.rpartition("-")[0] or name for name in found]
    assert names[:2] == ["page/early.js", "page/credentials.js"], "run `make web`"
    assert sorted(names[2:]) == ["bundle/chunk", "bundle/main.js", "bundle/other_views"]
    for name in ("Decisions", "Capacity", "Settings", "Fleet"):
        page.get_by_label("Views").get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
    assert len(found) == 5


def test_view_of_a_path_is_loaded_at_once(server, open_tab):
    page = open_tab(server.address).open("/decisions")
    expect(page.get_by_role("heading", level=1, name="Decisions")).to_be_visible()


def test_changed_modules_are_loaded_without_the_bundle(server, open_tab, tmp_path, monkeypatch):
    static = dashboard_files.copy_static(tmp_path)
    dashboard_files.write_bundle(static, {"main.js": "throw new Error('this bundle is old');\n"})
    title = static / "shell.js"
    title.write_text(title.read_text().replace("· Roost`", "· A changed Roost`"))
    monkeypatch.setattr("roost.dashboard.dashboard_site.resources.files", lambda _package: tmp_path)
    site = DashboardSite(authentication="noauth2", version="1", check_origin=lambda _headers: None)

    def fulfill(route):
        status, headers, body = dashboard_files.ask(site, urlsplit(route.request.url).path)
        route.fulfill(status=status, headers=headers, body=body)

    tab = open_tab(server.address)
    found = list_modules(tab.page)
    tab.page.route("**/ui/**", fulfill)
    page = tab.open("/?test")
    wait_until(lambda: page.evaluate(IS_PAINTED))
    assert page.title() == "Fleet · A changed Roost"
    wait_until(lambda: page.evaluate(HAS_ALL_VIEWS))
    assert {"main.js", "fleet/fleet_view.js", "work/drain_view.js", "libraries/preact.js"} <= set(found)
    assert not any(name.startswith("bundle/") for name in found)
