"""The fleet, decisions and dry runs, with a real server and a real browser."""

import re

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.dashboard.live_pages import wait_until_live
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

HOSTS = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server on a generated fleet."""
    folder = tmp_path_factory.mktemp("fleet")
    with open_roost(None, folder) as product:
        product.install(generate(Recipe(hosts=HOSTS, requests=1), Options()).fleet)
    with serve(noun="up", folder=folder) as running:
        yield running
        assert running.problems == []


def decide(server, **request):
    """Make a decision; return its body."""
    status, _, body = server.ask("POST", "/v1/decisions", {"flavor": {"name": "small", "vcpus": 1}, **request})
    assert status == 201, body
    return body


def fleet_of(page):
    """Wait for the map; return it."""
    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()
    wait_until(lambda: page.evaluate("window.fleetMap?.isPainted"))
    return page.get_by_role("application")


def pixel_of(page, name):
    """Return the colour of a host on the canvas."""
    return page.evaluate(
        """(name) => {
          const map = window.fleetMap, host = [...Array(map.fleet.hosts).keys()].find((at) => map.nameOf(at) === name);
          const place = map.placeOf(host), cell = map.layout.pitch * map.view.zoom;
          return [...map.context.getImageData(place.x + cell / 2, place.y + cell / 2, 1, 1).data].slice(0, 3);
        }""",
        name,
    )


def test_map_shows_all_hosts_and_follows_claims(server, open_tab):
    tab = open_tab(server.address)
    page = tab.open("/?test&colour=VCPU")
    fleet_of(page)
    hosts = page.evaluate("window.fleetMap.layout.areas.flatMap((area) => [...area.at]).filter((host) => host >= 0)")
    assert len(set(hosts)) == len(hosts) == page.evaluate("window.fleetMap.fleet.hosts")
    _, _, listed = server.ask("GET", "/v1/hosts?limit=1000&fields=host,node,resources")
    free = max(listed["hosts"], key=lambda each: each["resources"]["VCPU"]["free"])
    before = pixel_of(page, free["node"])
    amount = free["resources"]["VCPU"]["free"]
    decide(server, flavor={"name": "all", "vcpus": amount}, force_hosts=[free["host"]])
    wait_until(lambda: pixel_of(page, free["node"]) != before)
    page.reload()
    fleet_of(page)
    assert pixel_of(page, free["node"]) != before


def test_host_is_found_by_name_and_pinned(server, open_tab):
    page = open_tab(server.address).open("/?test")
    fleet_of(page)
    page.keyboard.press("/")
    page.keyboard.type("host-00007")
    expect(page.get_by_text("1 host found")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("host=host-00007"))
    expect(page.get_by_role("complementary").get_by_role("link", name="host-00007")).to_be_visible()


def test_map_works_with_the_keyboard_alone(server, open_tab):
    page = open_tab(server.address).open("/?test")
    board = fleet_of(page)
    board.focus()
    page.keyboard.press("ArrowRight")
    first = page.evaluate("window.fleetMap.cursor")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("window.fleetMap.cursor") != first
    expect(page.locator("[aria-live=polite]").filter(has_text="VCPU")).to_have_count(1)
    zoom = page.evaluate("window.fleetMap.view.zoom")
    page.keyboard.press("+")
    assert page.evaluate("window.fleetMap.view.zoom") > zoom
    page.keyboard.press("0")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("host=host-"))


def test_disabled_host_is_marked_at_once(server, open_tab):
    page = open_tab(server.address).open("/?test")
    fleet_of(page)
    server.ask("PATCH", "/v1/services/host-00003", {"disabled": True, "disabled_reason": "disk"})
    expect(page.get_by_role("button", name="disabled 1")).to_be_visible()
    page.get_by_role("button", name="disabled 1").click()
    expect(page.get_by_text("1 host found")).to_be_visible()
    server.ask("PATCH", "/v1/services/host-00003", {"disabled": False})
    expect(page.get_by_role("button", name="disabled 0")).to_be_visible()


def test_groups_of_the_map_are_a_table_too(server, open_tab):
    page = open_tab(server.address).open("/?test&group=kind")
    fleet_of(page)
    page.get_by_text("As a table").click()
    rows = page.get_by_role("table", name="Groups of hosts").get_by_role("row")
    assert rows.count() == 1 + page.evaluate("window.fleetMap.layout.areas.length")


def test_refusal_is_understood_and_the_offered_change_is_tried_and_placed(server, open_tab):
    refused = decide(server, flavor={"name": "giant", "vcpus": 2, "memory_mb": 2_000_000})
    assert refused["outcome"] == "refused"
    page = open_tab(server.address).open("/decisions")
    page.get_by_role("link", name=refused["uuid"][:8]).first.click()
    expect(page.get_by_text("✕ Refused")).to_be_visible()
    expect(page.get_by_text("lack 2,000,000 MiB memory or more").first).to_be_visible()
    page.get_by_role("button", name="Try it").first.click()
    expect(page.get_by_role("heading", name="Try a request")).to_be_visible()
    expect(page.get_by_text("✓ Granted")).to_be_visible()
    page.get_by_role("button", name="Place it").click()
    page.get_by_role("button", name="Claim only").click()
    page.get_by_role("dialog").get_by_role("button", name="Place it").click()
    expect(page).to_have_url(re.compile(r"/ui/decisions/[0-9a-f-]{36}$"))
    expect(page.get_by_text("✓ Granted")).to_be_visible()
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("✓ Replayed: the same")).to_be_visible()


def test_dry_run_follows_the_fields_and_claims_nothing(server, open_tab):
    _, _, before = server.ask("GET", "/v1/status")
    page = open_tab(server.address).open("/try")
    expect(page.get_by_text("✓ Granted")).to_be_visible()
    page.get_by_label("VCPU", exact=True).fill("100000")
    expect(page.get_by_text("✕ Refused")).to_be_visible()
    page.get_by_label("VCPU", exact=True).fill("many")
    expect(page.get_by_role("alert")).to_have_text("VCPU must be a whole number.")
    page.get_by_role("button", name="JSON").click()
    page.get_by_label("Request as JSON").fill('{"flavor": {"vcpu": 1}}')
    expect(page.get_by_role("alert")).to_contain_text("unknown field")
    _, _, after = server.ask("GET", "/v1/status")
    assert after["consumers"] == before["consumers"]


def test_changed_choice_is_refused_when_it_is_placed(server, open_tab):
    page = open_tab(server.address).open("/try")
    page.get_by_label("VCPU", exact=True).fill("3")
    # The result is that of the last change when its facts are shown.
    expect(page.get_by_role("definition").get_by_text("3", exact=True)).to_be_visible()
    expect(page.get_by_text("✓ Granted")).to_be_visible()
    chosen = page.get_by_role("table", name="Chosen hosts").get_by_role("link").first.inner_text()
    server.ask("PATCH", f"/v1/services/{chosen}", {"disabled": True})
    page.get_by_role("button", name="Place it").click()
    page.get_by_role("button", name="Claim only").click()
    page.get_by_role("dialog").get_by_role("button", name="Place it").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("Look at the new dry run")
    server.ask("PATCH", f"/v1/services/{chosen}", {"disabled": False})


def test_sliders_show_which_host_would_win(server, open_tab):
    granted = decide(server)
    page = open_tab(server.address).open(f"/decisions/{granted['uuid']}")
    page.get_by_text("Try other multipliers").click()
    names = [each["weigher"] for each in granted["scores"][0]["weights"] if each["multiplier"]]
    for name in names:
        page.get_by_label(f"Multiplier of {name}").fill("-5")
    totals = [
        sum(-5 * each["normalised"] if each["multiplier"] else 0 for each in score["weights"])
        for score in granted["scores"]
    ]
    best = granted["scores"][totals.index(max(totals))]["host"]
    expect(page.get_by_role("region", name="Ranking").get_by_role("row").nth(1)).to_contain_text(best)


def test_live_view_shows_decisions_as_they_happen(server, open_tab):
    page = open_tab(server.address).open("/live")
    expect(page.get_by_text("No event yet.")).to_be_visible()
    wait_until_live(page)
    granted = decide(server, flavor={"name": "now", "vcpus": 1})
    expect(page.get_by_role("link", name=f"now → {granted['picks'][0]['host']}")).to_be_visible()
    decide(server, flavor={"name": "never", "vcpus": 100_000})
    expect(page.get_by_text("lack 100,000 VCPU or more").first).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    decide(server, flavor={"name": "later", "vcpus": 100_001})
    reasons = page.locator("section").filter(has=page.get_by_role("heading", name="Refusals by reason"))
    expect(reasons.get_by_text("lack 100,001 VCPU or more")).to_be_visible()  # the page has the event
    events = page.get_by_role("list", name="Events, newest first")
    expect(events.get_by_text("lack 100,001 VCPU or more")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(events.get_by_text("lack 100,001 VCPU or more")).to_be_visible()
    page.get_by_role("button", name="Refused, failed").click()
    expect(events.get_by_text("now →")).to_have_count(0)
    expect(events.get_by_text("lack 100,000 VCPU or more")).to_be_visible()


def test_page_goes_on_after_the_server_was_killed(tmp_path, open_tab):
    with open_roost(None, tmp_path) as product:
        product.install(generate(Recipe(hosts=5, requests=1), Options()).fleet)
    with serve(noun="up", folder=tmp_path) as first:
        port = first.port
        tab = open_tab(first.address)
        page = tab.open("/?test")
        fleet_of(page)
        wait_until_live(page)
        tab.expects_outage = True
        first.process.kill()
        first.process.wait()
        expect(page.get_by_text("Not live since")).to_be_visible()
    with serve(noun="up", folder=tmp_path, listen=f"127.0.0.1:{port}") as second:
        expect(page.get_by_text("Not live since")).to_have_count(0, timeout=40_000)
        second.ask("PATCH", "/v1/services/host-00001", {"disabled": True})
        expect(page.get_by_role("button", name="disabled 1")).to_be_visible()


def test_hidden_tabs_hold_no_stream(server, open_tab):
    tab = open_tab(server.address)
    requests = []
    tab.context.on("request", lambda request: requests.append(request.url))
    # A browser with eight streams to one server would not load a ninth page.
    tab.context.add_init_script("Object.defineProperty(document, 'hidden', {get: () => true})")
    for _ in range(8):
        page = tab.new_page()
        page.goto(f"{server.address}/ui/decisions")
        expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    assert [url for url in requests if "/v1/events" in url] == []
