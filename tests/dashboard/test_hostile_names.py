"""Names with markup and escape sequences in every view that shows them, and flavor names of the largest length."""

import json
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from playwright.sync_api import Error, expect

from roost.app import open_roost
from tests.dashboard.live_pages import wait_until_live
from tests.support.fleets.worlds import aggregate, host, merge_fleets
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

ESCAPE = "\x1b[31m"
# Hosts have names without spaces and slashes; nodes, flavors, zones, projects and reasons may have any text.
HOST = "<u>%2F&amp;'" + '"'
NODE = f"""<img src=x onerror="document.title='1'">{ESCAPE}&amp;%2F'"""
PLAIN = "<b>plain"
TEXT = f"""<img src=y onerror="document.title='2'">{ESCAPE}&amp;'"""
ZONE = f"<s>zone{ESCAPE}"
PROJECT = f"<i>project{ESCAPE}"
NAME = f"<b>instance{ESCAPE}"
REASON = f"<i>reason{ESCAPE}"
SIZES = ((1440, 900), (390, 844))
LONGEST = "<u>".ljust(255, "w")
TIP_MS = 2000  # The tip follows the pointer late.
LONG_MS = 60_000  # The first comparison starts the reader process.
# The centre of a host in the map.
HOST_PLACE = """
(name) => {
  const map = window.fleetMap, half = (map.layout.pitch * map.view.zoom) / 2;
  const place = map.placeOf([...Array(map.fleet.hosts).keys()].find((at) => map.nameOf(at) === name));
  return {x: place.x + half, y: place.y + half};
}
"""
# Elements that the names above would be, and that the page does not use.
SPOILED = "u, b, s, i, img"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Yield a server on which every name is hostile, and the uuids of its decisions by outcome."""
    folder = tmp_path_factory.mktemp("names")
    with open_roost(None, folder) as product:
        zone = aggregate(ZONE, availability_zone=ZONE)
        fleet = merge_fleets(zone, host(NODE, aggregates=[ZONE]), host(PLAIN, aggregates=[ZONE]))
        fleet.hosts[0] = replace(fleet.hosts[0], host=HOST)
        product.install(fleet)
    with serve(noun="up", folder=folder) as server:
        ids = {}
        for outcome, vcpus, where in (("granted", 1, [HOST]), ("other", 1, [PLAIN]), ("refused", 1000, [])):
            flavor = {"name": TEXT, "vcpus": vcpus, "memory_mb": 1}
            body = {"flavor": flavor, "project_id": PROJECT, "force_hosts": where}
            ids[outcome] = ask(server, "POST", "/decisions", body)["uuid"]
        ask(server, "PUT", f"/flavors/{quote(TEXT, safe='')}", {"vcpus": 1, "memory_mb": 1})
        request = {"name": NAME, "flavor": {"name": TEXT, "vcpus": 1, "memory_mb": 1}, "force_hosts": [PLAIN]}
        accepted = ask(server, "POST", "/instances", request)
        ids |= {"instance": accepted["instances"][0], "operation": accepted["operation"]}
        ask(server, "PATCH", f"/services/{quote(HOST, safe='')}", {"disabled": True, "disabled_reason": REASON})
        yield server, ids
        assert server.problems == []


def ask(server, method, path, body=None):
    """Send a request that succeeds; return its body."""
    status, _, answer = server.ask(method, f"/v1{path}", body)
    assert status in {200, 201, 202}, answer
    return answer


VIEWS = {
    "groups of the map": ("/?group=zone", ZONE),
    "pinned host": (f"/?host={quote(NODE, safe='')}", NODE),
    "host": (f"/hosts/{quote(HOST, safe='')}", HOST),
    "host by its node": (f"/hosts/{quote(NODE, safe='')}", NODE),
    "events of a host": (f"/hosts/{quote(HOST, safe='')}", f"reason {REASON}"),
    "decisions": ("/decisions", PROJECT),
    "granted": ("/decisions/{granted}", TEXT),
    "host of a decision": ("/decisions/{granted}", HOST),
    "refused": ("/decisions/{refused}", TEXT),
    "nearest hosts": ("/decisions/{refused}", PLAIN),
    "claims": ("/instances", NODE),
    "instances": ("/instances", NAME),
    "instance": ("/instances/{instance}", NAME),
    "operation": ("/operations/{operation}", NAME),
    "plan of a drain": (f"/drains?hosts={quote(HOST, safe='')}", HOST),
    "capacity": ("/capacity", TEXT),
    "changes": ("/settings/changes", TEXT),
}


@pytest.mark.parametrize("name", VIEWS)
def test_names_stay_text(served, open_tab, name):
    server, ids = served
    path, text = VIEWS[name]
    page = open_tab(server.address).open(path.format(**ids))
    wait_until(lambda: text in page.evaluate("document.body.textContent"))
    check(page)


@pytest.mark.parametrize("size", SIZES)
def test_tip_of_the_map_is_text(served, open_tab, size):
    server, _ = served
    page = open_tab(server.address, size=size).open("/?test")
    wait_until(lambda: page.evaluate("window.fleetMap?.isPainted"))
    board = page.get_by_role("application")
    board.scroll_into_view_if_needed()

    def show_tip():
        """Point at the host: the page may move until all of its parts are shown."""
        box, place = board.bounding_box(), page.evaluate(HOST_PLACE, NODE)
        page.mouse.move(0, 0)
        page.mouse.move(box["x"] + place["x"], box["y"] + place["y"])
        try:
            page.locator(".tip").get_by_text(NODE, exact=True).wait_for(timeout=TIP_MS)
        except Error:
            return False
        return True

    wait_until(show_tip)
    check(page)


def test_live_events_are_text(served, open_tab):
    server, _ = served
    page = open_tab(server.address).open("/live")
    wait_until_live(page)
    flavor = {"name": TEXT, "vcpus": 1, "memory_mb": 1}
    ask(server, "POST", "/decisions", {"flavor": flavor, "force_hosts": [PLAIN]})
    ask(server, "PATCH", f"/services/{quote(PLAIN, safe='')}", {"disabled": True, "disabled_reason": REASON})
    ask(server, "PATCH", f"/services/{quote(PLAIN, safe='')}", {"disabled": False})
    events = page.get_by_role("list", name="Events, newest first")
    for text in (f"{TEXT} → {PLAIN}", REASON):
        wait_until(lambda text=text: text in events.evaluate("(list) => list.textContent"))
    check(page)


def test_names_in_a_comparison_are_text(served, open_tab):
    server, _ = served
    sets = json.dumps([[TEXT, {}], [NAME, {"filter_scheduler": {"cpu_weight_multiplier": -1}}]])
    page = open_tab(server.address).open(f"/policies?sets={quote(sets)}")
    expect(page.get_by_role("heading", name="recorded requests, decided again")).to_be_visible(timeout=LONG_MS)
    canvas = page.get_by_role("img", name=f"VCPU by host under {TEXT}")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    wait_until(lambda: PLAIN in page.evaluate("document.body.textContent"))
    check(page)


def test_longest_flavor_name_is_shown_whole_and_fits(served, open_tab):
    server, _ = served
    ask(server, "PUT", f"/flavors/{quote(LONGEST)}", {"vcpus": 1, "memory_mb": 1})
    decision = ask(server, "POST", "/decisions", {"flavor": LONGEST, "force_hosts": [PLAIN]})
    for size in SIZES:
        tab = open_tab(server.address, size=size)
        for path in (f"/decisions/{decision['uuid']}", "/capacity", "/settings/changes"):
            page = tab.open(path)
            wait_until(lambda page=page: LONGEST in page.evaluate("document.body.textContent"))
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], path
            check(page)


@pytest.mark.parametrize("length", [256, 2**20])
def test_longer_flavor_name_is_refused_and_stored_nowhere(served, length):
    server, _ = served
    name = "w" * length
    before = [ask(server, "GET", path) for path in ("/decisions", "/flavors", "/changes")]
    for method, path, body in (
        ("PUT", "/flavors/long", {"name": name, "vcpus": 1}),
        ("PUT", f"/flavors/{name}", {"vcpus": 1}),
        ("POST", "/decisions", {"flavor": {"name": name, "vcpus": 1}}),
        ("POST", "/explanations", {"flavor": {"name": name, "vcpus": 1}}),
    ):
        status, _, problem = server.ask(method, f"/v1{path}", body)
        assert status in {400, 413, 414}, (path[:40], status, problem)
        assert len(json.dumps(str(problem))) < 2000
    assert [ask(server, "GET", path) for path in ("/decisions", "/flavors", "/changes")] == before


def check(page):
    """Check that no name became an element or ran."""
    assert page.locator(SPOILED).count() == 0
    assert page.title().endswith("Roost")
