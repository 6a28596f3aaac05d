"""Every view without violations of accessibility rules, by axe: light and dark, on a desk and on a phone."""

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.support.accessibility import find_violations
from tests.support.servers.servers import serve
from tests.support.servers.token_files import write_tokens

VIEWS = {
    "fleet": "/",
    "room": "/?colour=fit&flavor=vcpus%3D1",
    "decisions": "/decisions",
    "granted": "/decisions/{granted}",
    "refused": "/decisions/{refused}",
    "try": "/try",
    "live": "/live",
    "unknown": "/nothing",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with a fleet, and the uuids of a granted and a refused decision."""
    folder = tmp_path_factory.mktemp("views")
    with open_roost(None, folder) as product:
        product.install(generate(Recipe(hosts=40, requests=1), Options()).fleet)
    with serve(noun="up", folder=folder) as server:
        ids = {}
        for outcome, vcpus in (("granted", 1), ("refused", 100_000)):
            ids[outcome] = server.ask("POST", "/v1/decisions", {"flavor": {"name": "x", "vcpus": vcpus}})[2]["uuid"]
        yield server, ids


@pytest.mark.parametrize("name", VIEWS)
def test_views_have_no_violations(name, served, open_tab):
    server, ids = served
    found = {}
    for scheme, size in (("light", (1440, 900)), ("dark", (1440, 900)), ("light", (390, 844))):
        page = open_tab(server.address, size=size, scheme=scheme).open(VIEWS[name].format(**ids))
        expect(page.get_by_role("main")).to_be_visible()
        expect(page.get_by_text("Loading")).to_have_count(0)
        found |= {(scheme, size[0], rule): text for rule, text in find_violations(page).items()}
    assert found == {}


def test_sign_in_has_no_violations(tmp_path, open_tab):
    _, settings = write_tokens(tmp_path, {})
    with serve(noun="up", folder=tmp_path, settings=settings) as server:
        page = open_tab(server.address).open("/")
        expect(page.get_by_label("Token")).to_be_visible()
        assert find_violations(page) == {}
