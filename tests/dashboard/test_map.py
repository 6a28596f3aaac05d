"""The map of the fleet: room for a flavor, drained hosts, and levels, with a real server and a real browser."""

import random
import re

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from roost.simulator.traces.generated_fleet import generate_fleet
from tests.dashboard.clouds import build, running_cloud
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

HOSTS = 400
FLAVOR = {"name": "", "vcpus": 4, "memory_mb": 8192, "root_gb": 20}
TEXT = "vcpus=4,memory_mb=8192,root_gb=20"
# The place of a host in the window, by its name; null while the fleet is loaded.
FIND_HOST = """(name) => {
  const map = window.fleetMap;
  if (!map?.fleet || !map.isPainted) return null;
  const host = [...Array(map.fleet.hosts).keys()].find((at) => map.nameOf(at) === name);
  const place = map.placeOf(host), cell = map.layout.pitch * map.view.zoom;
  const box = map.canvas.getBoundingClientRect();
  return {cell, x: box.left + place.x + cell / 2, y: box.top + place.y + cell / 2};
}"""


def find_host(page, name):
    """Return the place of a host in the window, once the map shows it."""
    return wait_until(lambda: page.evaluate(FIND_HOST, name))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server on a generated fleet, which is too large for the deciding thread to count its room."""
    folder = tmp_path_factory.mktemp("map")
    with open_roost(None, folder) as product:
        product.install(generate_fleet(HOSTS, rng=random.Random("map"), groups=[]))
    with serve(noun="up", folder=folder) as running:
        yield running
        assert running.problems == []


def open_map(tab, path):
    """Open the map and wait for its first picture; return the page and the map."""
    page = tab.open(path)
    wait_until(lambda: page.evaluate("window.fleetMap?.isPainted"))
    return page, page.get_by_role("application")


def count(server, **question):
    """Return how many more fit, as the server says."""
    status, _, answer = server.ask("POST", "/v1/capacity", {"request": {"flavor": FLAVOR}, **question})
    assert status == 200, answer
    return answer


def zoom_of(page):
    """Return the zoom of the map."""
    return page.evaluate("window.fleetMap.view.zoom")


def test_room_for_a_flavor_is_the_count_of_the_server(server, open_tab):
    page, _ = open_map(open_tab(server.address), f"/?test&colour=fit&flavor={TEXT}")
    answer = count(server, by=["host"])
    expect(page.get_by_text(f"{answer['count']:,} more of these fit")).to_be_visible()
    most = max(answer["by_host"], key=lambda each: each["count"])
    place = find_host(page, most["node"])
    page.mouse.move(place["x"], place["y"])
    expect(page.get_by_text(f"{most['count']} more fit", exact=True)).to_be_visible()
    none = sum(each["count"] == 0 for each in answer["by_host"])
    expect(page.get_by_text(f"0: {none}", exact=True)).to_be_visible()
    # The counts follow the fleet.
    decided = server.ask("POST", "/v1/decisions", {"flavor": FLAVOR, "force_hosts": [most["host"]]})
    assert decided[0] == 201
    after = count(server)["count"]
    assert after < answer["count"]
    expect(page.get_by_text(f"{after:,} more of these fit")).to_be_visible()


def test_flavor_of_an_earlier_request_is_chosen_by_its_name(server, open_tab):
    flavor = {"name": "of a request", "vcpus": 2, "memory_mb": 512}
    assert server.ask("POST", "/v1/decisions", {"flavor": flavor})[0] == 201
    page, _ = open_map(open_tab(server.address), f"/?test&colour=fit&flavor={TEXT}")
    page.get_by_label("Flavor", exact=True).select_option("of a request")
    _, _, answer = server.ask("GET", "/v1/capacity?flavor=of%20a%20request")
    expect(page.get_by_text(f"{answer['count']:,} more of a request fit")).to_be_visible()
    expect(page).to_have_url(re.compile("flavor=of(\\+|%20)a"))
    page.get_by_label("Flavor", exact=True).select_option("Own amounts")
    field = page.get_by_label("VCPU", exact=True)
    expect(field).to_have_value("2")
    field.fill("100000")
    field.press("Enter")
    expect(page.get_by_text("0 more of these fit")).to_be_visible()


def test_unknown_flavor_is_named(server, open_tab):
    page, _ = open_map(open_tab(server.address), "/?test&colour=fit&flavor=none")
    expect(page.get_by_text("No flavor none is known.")).to_be_visible()


def test_another_flavor_ends_the_question_of_the_one_before(server, open_tab):
    tab = open_tab(server.address)
    held, ended = [], []
    tab.context.on("requestfailed", lambda request: ended.append(request.post_data or ""))
    tab.context.route(
        "**/v1/capacity/columns", lambda route: route.continue_() if held else held.append(route.request.post_data)
    )
    page, _ = open_map(tab, f"/?test&colour=fit&flavor={TEXT}")
    expect(page.get_by_text("Counting …")).to_be_visible()
    page.wait_for_timeout(500)
    field = page.get_by_label("VCPU", exact=True)
    field.fill("8")
    field.press("Enter")
    expect(page.get_by_text(re.compile("more of these fit"))).to_be_visible()
    assert len(held) == 1
    assert held[0] in ended


def test_double_clicks_go_nearer_and_escape_goes_back(server, open_tab):
    page, board = open_map(open_tab(server.address), "/?test&group=kind")
    levels = page.get_by_role("navigation", name="Levels of the map")
    expect(levels).to_have_count(0)
    zooms = [zoom_of(page)]
    while "/hosts/" not in page.url:
        place = find_host(page, "host-00007")
        page.mouse.dblclick(place["x"], place["y"])
        page.wait_for_timeout(400)
        if "/hosts/" not in page.url:
            zooms.append(zoom_of(page))
            assert zooms[-1] > zooms[-2]
            expect(levels.get_by_role("button", name="Fleet")).to_be_visible()
    assert len(zooms) >= 3
    expect(page.get_by_role("heading", name="host-00007")).to_be_visible()
    page.go_back()
    wait_until(lambda: page.evaluate("window.fleetMap?.isPainted"))
    expect(page).not_to_have_url(re.compile("host="))  # The two clicks of a double click do not choose the host.
    place = find_host(page, "host-00007")
    page.mouse.dblclick(place["x"], place["y"])
    page.mouse.dblclick(place["x"], place["y"])
    near = zoom_of(page)
    board.focus()
    page.keyboard.press("Escape")
    assert zoom_of(page) < near
    levels.get_by_role("button", name="Fleet").click()
    assert zoom_of(page) == zooms[0]
    expect(levels).to_have_count(0)


def test_keys_go_nearer_and_back(server, open_tab):
    page, board = open_map(open_tab(server.address), "/?test")
    first = zoom_of(page)
    board.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("host=host-"))
    assert zoom_of(page) == first
    page.keyboard.press("Enter")
    second = zoom_of(page)
    assert second > first
    page.keyboard.press("Escape")
    assert zoom_of(page) == first
    expect(page).to_have_url(re.compile("host=host-"))
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("host=host-"))


def test_host_is_draining_while_its_drain_is_open(tmp_path, open_tab):
    with running_cloud(tmp_path, hosts=2) as server:
        build(server, "one", count=3, host="node-1")
        page, board = open_map(open_tab(server.address), "/?test&colour=state")
        expect(page.get_by_role("button", name="draining 0")).to_be_visible()
        status, _, accepted = server.ask("POST", "/v1/hosts/node-1/drain", {"disable": True, "at_once": 1})
        assert status == 202, accepted
        drain = f"/v1/operations/{accepted['operation']}"
        assert server.ask("POST", f"{drain}/pause")[0] == 202
        expect(page.get_by_role("button", name="draining 1")).to_be_visible()
        page.get_by_role("button", name="draining 1").click()
        expect(page.get_by_text("1 host found")).to_be_visible()
        assert server.ask("DELETE", drain)[0] == 202
        expect(page.get_by_role("button", name="draining 0")).to_be_visible()
        expect(page.get_by_role("button", name="disabled 1")).to_be_visible()
        board.focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("[aria-live=polite]").filter(has_text="node-1, disabled")).to_have_count(1)
        page.close()


def list_requests(page):
    """Return the fleet requests of a page, from now on."""
    found = []
    page.on("request", lambda request: "/v1/fleet/" in request.url and found.append(request.url.partition("/v1")[2]))
    return found


def test_first_page_requests_columns_and_names_once_and_early(server, open_tab):
    tab = open_tab(server.address)
    found = list_requests(tab.page)
    page, _ = open_map(tab, "/?test")
    assert sorted(found) == ["/fleet/columns", "/fleet/names"]
    page.get_by_role("link", name="List of hosts").click()
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    assert len(found) == 2


def test_other_pages_request_names_after_their_columns(server, open_tab):
    tab = open_tab(server.address)
    found = list_requests(tab.page)
    page = tab.open("/hosts")
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    assert found[0] == "/fleet/columns"
    assert re.fullmatch(r"/fleet/names\?generation=\w+", found[1])


def test_names_of_another_generation_are_requested_again(server, open_tab):
    tab = open_tab(server.address)
    stale = {"x-roost-generation": "0123", "content-type": "text/plain"}
    tab.page.route("**/v1/fleet/names", lambda route: route.fulfill(headers=stale, body="wrong\n" * HOSTS))
    page, _ = open_map(tab, "/?test")
    names = page.evaluate("[...Array(window.fleetMap.fleet.hosts).keys()].map((at) => window.fleetMap.nameOf(at))")
    assert sorted(names) == sorted(set(names) - {"wrong"})
    assert len(names) == HOSTS


def test_map_appears_if_the_early_requests_fail(server, open_tab):
    tab = open_tab(server.address)
    tab.expects_outage = True
    turns = []

    def fail_first(route):
        turns.append(route.request.url)
        return route.abort() if len(turns) == 1 else route.continue_()

    tab.page.route("**/v1/fleet/columns", fail_first)
    open_map(tab, "/?test")
    assert len(turns) == 2
